/* Bodies that move: the share of a cell that a body fills, and the velocity of the body there. A body has
   a row of numbers in `motion` (solids/moving_bodies.py); row 0 is that of a body at rest. */

/* A kernel whose registers must suffice for the threads of so many blocks of a multiprocessor. */
#if defined(__CUDACC__) && !defined(__HIP__)
#define DENSE_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#else
#define DENSE_KERNEL(threads, blocks) \
  KERNEL(threads)
#endif

/* The difference of a coordinate from a centre, to the nearest image if `wrap`, the size of the box along a
   periodic axis, is not 0. */
#define WRAPPED(type, name)                                                     \
  INLINE type name(type difference, type wrap)                                  \
  {                                                                             \
    const type limit = wrap * (type)0.5;                                        \
    return difference > limit ? difference - wrap : difference < -limit ? difference + wrap : difference; \
  }
WRAPPED(real, wrapped_real)
#ifdef REAL_DOUBLE
#define wrapped_double wrapped_real
#else
WRAPPED(double, wrapped_double)
#endif

/* The velocity of body `number` at a point; 0 without a body. Few cells are in bodies, so the branch spares most
   of them the numbers of the body. */
typedef struct { real x, y, z; } Velocity;
INLINE Velocity velocity_in_body(GLOBAL const double* motion, int number, real x, real y, real z)
{
  Velocity u = {R(0), R(0), R(0)};
  if (number) {
    GLOBAL const double* row = motion + ROW_OF(number);
    const real whole = (real)row[BODY_WRAP + 2];
    z += z < 0 ? whole : z > whole ? -whole : 0; /* ghost planes of a periodic axis */
    const real ox = wrapped_real(x - (real)row[BODY_CENTRE], (real)row[BODY_WRAP]);
    const real oy = wrapped_real(y - (real)row[BODY_CENTRE + 1], (real)row[BODY_WRAP + 1]);
    const real oz = wrapped_real(z - (real)row[BODY_CENTRE + 2], whole);
    const real wx = (real)row[BODY_SPIN], wy = (real)row[BODY_SPIN + 1], wz = (real)row[BODY_SPIN + 2];
    u.x = MAD(wy, oz, NMAD(wz, oy, (real)row[BODY_VELOCITY]));
    u.y = NMAD(wx, oz, MAD(wz, ox, (real)row[BODY_VELOCITY + 1]));
    u.z = MAD(wx, oy, NMAD(wy, ox, (real)row[BODY_VELOCITY + 2]));
  }
  return u;
}

INLINE double size_of(double n) { return n < 0 ? (-n < SMALL_NORMAL ? 0 : -n) : (n < SMALL_NORMAL ? 0 : n); }

/* share_behind of solids/shares.py: the share of a unit cell behind a plane. */
INLINE double share_behind(double distance, double x, double y, double z)
{
  const double a = size_of(x), b = size_of(y), c = size_of(z), whole = a + b + c;
  const double scale = whole > 0 ? whole : 1;
  const double ma = a / scale, mb = b / scale, mc = c / scale;
  const double low = ma < mb ? ma : mb, high = ma < mb ? mb : ma;
  const double m1 = low < mc ? low : mc, m3 = high > mc ? high : mc;
  const double m2 = low > mc ? low : (high < mc ? high : mc);
  double offset = distance / scale, share;
  offset = offset < -0.5 ? -0.5 : offset > 0.5 ? 0.5 : offset;
  const double alpha = 0.5 - (offset < 0 ? -offset : offset), pair = m1 + m2, three = 6 * m1 * m2 * m3;
  if (whole <= 0) share = alpha;
  else if (alpha < m1) share = alpha * alpha * alpha / three;
  else if (alpha < m2) share = alpha * (alpha - m1) / (2 * m2 * m3) + m1 * m1 / (6 * m2 * m3);
  else if (pair <= m3 && alpha >= pair) share = (2 * alpha - pair) / (2 * m3);
  else {
    const double p = alpha - m1, q = alpha - m2, r = alpha > m3 ? alpha - m3 : 0;
    share = (alpha * alpha * alpha - p * p * p - q * q * q - r * r * r) / three;
  }
  share = share < 0 ? 0 : share > 0.5 ? 0.5 : share;
  return offset > 0 ? share : 1 - share;
}

/* The share of the unit cell around a point q from the centre in the frame of the body, from the grid of
   distances: that behind a plane, with the interpolated distance and the direction of its gradient. */
INLINE double share_of_field(GLOBAL const double* row, GLOBAL const float* distances, const double* q)
{
  GLOBAL const double* R = row + BODY_ROTATION;
  GLOBAL const float* own = distances + (int64)row[BODY_FIRST];
  int64 step[3], stride = 1;
  double part[3], n[3], value[2][2][2];
  for (int a = 0; a < 3; a++) {
    const int points = (int)row[BODY_POINTS + a];
    part[a] = 0;
    step[a] = 0;
    if (points > 1) {
      const double place = (q[a] - row[BODY_LOWER + a]) * POINTS_PER_CELL;
      if (place < 0 || place > points - 1) return 0;
      const int first = (int)place < points - 2 ? (int)place : points - 2;
      part[a] = place - first;
      step[a] = stride;
      own += stride * first;
    }
    stride *= points;
  }
  int full = 1, empty = 1;
  for (int k = 0; k < 2; k++)
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 2; i++) {
        const float found = own[k * step[2] + j * step[1] + i * step[0]];
        full = full && found <= -(float)LARGEST_DISTANCE;
        empty = empty && found >= (float)LARGEST_DISTANCE;
        value[k][j][i] = found;
      }
  if (full || empty) return full;
  double distance = 0;
  for (int a = 0; a < 3; a++) n[a] = 0;
  for (int k = 0; k < 2; k++)
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < 2; i++) {
        const double wx = i ? part[0] : 1 - part[0], wy = j ? part[1] : 1 - part[1];
        const double wz = k ? part[2] : 1 - part[2], each = value[k][j][i];
        distance += each * wx * wy * wz;
        n[0] += (i ? each : -each) * wy * wz;
        n[1] += (j ? each : -each) * wx * wz;
        n[2] += (k ? each : -each) * wx * wy;
      }
  const double size = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
  const double scale = size > SMALL_NORMAL ? 1 / size : 0;
  return share_behind(distance, (R[0] * n[0] + R[1] * n[1] + R[2] * n[2]) * scale,
                      (R[3] * n[0] + R[4] * n[1] + R[5] * n[2]) * scale,
                      (R[6] * n[0] + R[7] * n[1] + R[8] * n[2]) * scale);
}

/* The share of the unit cell around a point that a body fills. The share at an edge, where a round part
   meets a plane or two planes meet, is the product of those of the parts. */
INLINE double share_of_body(GLOBAL const double* row, GLOBAL const float* distances, double x, double y, double z)
{
  GLOBAL const double* R = row + BODY_ROTATION;
  const double r[3] = {wrapped_double(x - row[BODY_CENTRE], row[BODY_WRAP]),
                       wrapped_double(y - row[BODY_CENTRE + 1], row[BODY_WRAP + 1]),
                       wrapped_double(z - row[BODY_CENTRE + 2], row[BODY_WRAP + 2])};
  double q[3], far = 0, share = 1, squares = 0;
  /* Bodies turn about the axes along which they are infinite: the other axes have the same squares in both frames. */
  for (int a = 0; a < 3; a++)
    if (row[BODY_BOUNDED + a] > 0) squares += r[a] * r[a];
  if (squares > row[BODY_REACH_SQUARED]) return 0;
  if (squares < row[BODY_CORE_SQUARED]) return 1;
  for (int a = 0; a < 3; a++) {
    q[a] = R[a] * r[0] + R[3 + a] * r[1] + R[6 + a] * r[2];
    if (row[BODY_ROUND + a] > 0) far += q[a] * q[a];
  }
  if (row[BODY_POINTS] > 0) return share_of_field(row, distances, q);
  if (row[BODY_RADIUS] > 0) {
    far = sqrt(far);
    const double over = far > SMALL_NORMAL ? far : SMALL_NORMAL;
    double n[3];
    for (int a = 0; a < 3; a++) n[a] = row[BODY_ROUND + a] > 0 ? q[a] / over : 0;
    share = share_behind(far - row[BODY_RADIUS] + row[BODY_CORRECTION], R[0] * n[0] + R[1] * n[1] + R[2] * n[2],
                         R[3] * n[0] + R[4] * n[1] + R[5] * n[2], R[6] * n[0] + R[7] * n[1] + R[8] * n[2]);
  }
  for (int a = 0; a < 3; a++)
    if (row[BODY_HALF + a] > 0) {
      const double h = row[BODY_HALF + a], nx = R[a], ny = R[3 + a], nz = R[6 + a];
      const double both = share_behind(q[a] - h, nx, ny, nz) + share_behind(-q[a] - h, nx, ny, nz) - 1;
      share *= both > 0 ? both : 0;
    }
  return share;
}

/* Whether a cell is in the box of cells around a body that its kernel computes. */
INLINE int around_body(GLOBAL const double* row, int x, int y, int z)
{
  const int at[3] = {x, y, z};
  for (int a = 0; a < 3; a++) {
    const int size = (int)row[BODY_WRAP + a];
    int from = at[a] - (int)row[BODY_ORIGIN + a];
    if (size > 0 && from < 0) from += size;
    if (size > 0 && from >= size) from -= size;
    if (from < 0 || from >= (int)row[BODY_SIDE + a]) return 0;
  }
  return 1;
}

/* A share as it is stored; halves are rounded to the even number. */
INLINE uint8 stored_share(float total)
{
  const float value = (total < 1 ? total : 1) * (float)WHOLE_SHARE;
  const double raised = (double)value + 0.5;
  const int found = (int)raised;
  return (uint8)(found - ((double)found == raised && (found & 1)));
}

/* log2(1 + x) with the digits of a small x. Without branches, so that a CPU takes many at once, and
   with the same bits on a GPU that does not fuse: 1 + x = 2^k m, 1/2 < m^2 < 2, ln m = 2 artanh s,
   s = (m - 1) / (m + 1). */
#ifdef REAL_DOUBLE
typedef int64 bits_of_real;
typedef uint64 unsigned_bits;
#define MANTISSA 52
#define ROOT_HALF 0x3fe6a09e667f3bcd
#define LAST_TERM 21
#define NEARLY_INVERSE 0x7fde623822fc16e6
#define NEWTON_STEPS 5
#define BIAS 1023
#define LAST_POWER 14
#else
typedef int32 bits_of_real;
typedef uint32 unsigned_bits;
#define MANTISSA 23
#define ROOT_HALF 0x3f3504f3
#define LAST_TERM 9
#define NEARLY_INVERSE 0x7ef311c3
#define NEWTON_STEPS 4
#define BIAS 127
#define LAST_POWER 8
#endif
/* Unsigned, because a shift or an overflow of a signed number is undefined. At file scope, because
   Clang refuses a union inside a function under "omp declare simd". */
typedef union { real value; unsigned_bits bits; } real_and_bits;
INLINE real log2_of_sum(real whole, real lost)
{
  real_and_bits both = {whole};
  const bits_of_real k = (bits_of_real)(both.bits - ROOT_HALF) >> MANTISSA;
  both.bits -= (unsigned_bits)k << MANTISSA;
  const real m = both.value, s = (m - R(1)) / (m + R(1)), ss = s * s;
  real sum = R(1) / LAST_TERM;
  for (int n = LAST_TERM - 2; n > 1; n -= 2) sum = MAD(sum, ss, R(1) / n);
  return MAD(MAD(R(2) * s, ss * sum, MAD(R(2), s, lost)), R(1.4426950408889634), R(k));
}
MANY_AT_ONCE real log2_of_one_and(real x)
{
  const real whole = R(1) + x;
  return log2_of_sum(whole, x - (whole - R(1)));
}
MANY_AT_ONCE real log2_of(real x) { return log2_of_sum(x, R(0)); }

/* 2^x - one, for one = 0 or 1, within a few units in the last place, without branches and with the same
   bits on a GPU that does not fuse: 2^x = 2^k e^y, |y| <= ln(2)/2. Numbers x beyond the exponents of
   `real` are limited to them. */
INLINE real power_of_two_less(real x, real one)
{
  const real all = SMALLER(LARGER(x, R(1 - BIAS)), R(BIAS - 1));
  const bits_of_real k = (bits_of_real)(all + (all < R(0) ? R(-0.5) : R(0.5)));
  const real y = (all - R(k)) * R(0.6931471805599453);
  real sum = R(1);
  for (int n = LAST_POWER; n > 1; n--) sum = MAD(sum * y, R(1) / n, R(1));
  real_and_bits scale;
  scale.bits = (unsigned_bits)(k + BIAS) << MANTISSA;
  return MAD(scale.value * y, sum, scale.value - one);
}
MANY_AT_ONCE real power_of_two(real x) { return power_of_two_less(x, R(0)); }
MANY_AT_ONCE real power_of_two_less_one(real x) { return power_of_two_less(x, R(1)); }

/* 1 / b, b > 0, within two units in the last place and with the same bits on CPUs and GPUs that do not
   fuse. The exact division of a GPU branches, and costs registers that kernels at their limit lack.
   Newton's method; the bits of b, read as a whole number, give a first value within 13 %. */
INLINE real reciprocal_of(real b)
{
  real_and_bits first = {b};
  first.bits = NEARLY_INVERSE - first.bits;
  real found = first.value;
  for (int k = 0; k < NEWTON_STEPS; k++) found = MAD(found, NMAD(b, found, R(1)), found);
  return found;
}

#define ROW_START(plane, row) node_row[(plane) * (rows + 1) + (row)]
/* The node of a cell: those of its row are first, ..., end - 1, in the order of x. -1 in a solid. */
INLINE int node_of(GLOBAL const int32* node_cell, int first, int end, int row, int x, int nx)
{
  int low = end - nx + x > first ? end - nx + x : first;
  int high = first + x < end - 1 ? first + x : end - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (node_cell[middle] < row * nx + x) low = middle + 1;
    else high = middle;
  }
  return low <= high && node_cell[low] == row * nx + x ? low : -1;
}

/* What is stored: the value itself in another format or, in 16 bits, SCALE times the value: populations
   are small deviations, and so use the whole range of a half. [Lehmann et al. 2022, Phys. Rev. E 106, 015308]
   A kernel that computes in that unit loads and stores values as they are (..._OWN). */
#ifdef STORE_HALF
INLINE real widen_own(store bits) { return R(half_to_float(bits)); }
INLINE store narrow_own(real value) { return float_to_half((float)value); }
#else
INLINE real widen_own(store value) { return (real)value; }
INLINE store narrow_own(real value) { return (store)value; }
#endif
#if WIDE_SLOTS > 1
INLINE wide widened(store bits) { return (wide)widen_own(bits); }
INLINE store narrowed(wide value) { return narrow_own(R(value)); }
#else
INLINE wide widened(store bits) { return bits; }
INLINE store narrowed(wide bits) { return bits; }
#endif
#if defined(STORE_HALF) && !defined(REAL_DOUBLE)
/* A head has the first 11 significant bits of a float, its tail the following ones. Both, and the
   carrier, are rounded as bits of a float: a conversion to a half with 11 bits is then exact. A NaN may
   be lost, but not from the values that neither have nor carry a tail. */
#define SPARE 13 /* bits of a float beyond those of a half */
INLINE uint32 bits_of(real value)
{
  const real_and_bits both = {value};
  return both.bits;
}
INLINE real of_bits(uint32 bits)
{
  real_and_bits both;
  both.bits = bits;
  return both.value;
}
INLINE uint32 rounded(real value, int removed) { return bits_of(value) + (1u << (removed - 1)); }
INLINE real cut(uint32 bits, int removed) { return of_bits(bits & ~((1u << removed) - 1)); }
INLINE real head_of(real value, int bits) { return cut(rounded(value, SPARE - bits), SPARE); }
INLINE real carrier_of(real value, int bits) { return cut(rounded(value, SPARE + bits), SPARE + bits); }
INLINE real whole(store head, store carrier, int bits)
{
  return of_bits(bits_of(widen_own(head)) | (carrier & ((1u << bits) - 1)) << (SPARE - bits));
}
INLINE store without_tail(store carrier, int bits) { return (store)(carrier & ~((1u << bits) - 1)); }
INLINE store head_bits(real value, int bits) { return narrow_own(head_of(value, bits)); }
INLINE store carrier_bits(real value, real head, int bits)
{
  const uint32 tail = rounded(head, SPARE - bits) >> (SPARE - bits) & ((1u << bits) - 1);
  return (store)(without_tail(narrow_own(carrier_of(value, bits)), bits) | tail);
}
#endif
INLINE real widen(store bits) { return widen_own(bits) * (R(1) / R(SCALE)); }
INLINE store narrow(real value) { return narrow_own(value * R(SCALE)); }

#ifdef CUDA_TEXT
/* The values of cells x and x + 1 in one access. */
INLINE ushort2 two(unsigned short first, unsigned short second)
{
  return make_ushort2(first, second);
}
INLINE float2 two(float first, float second) { return make_float2(first, second); }
INLINE double2 two(double first, double second) { return make_double2(first, second); }
typedef decltype(two(store(), store())) store2;
INLINE void load_pair(const store* from, real& first, real& second)
{
  const store2 bits = *(const store2*)from;
  first = widen_own(bits.x), second = widen_own(bits.y);
}
INLINE void store_pair(store* to, real first, real second)
{
  STREAM((store2*)to, two(narrow_own(first), narrow_own(second)));
}
INLINE void send_pair(store* to, real first, real second)
{
  *(store2*)to = two(narrow_own(first), narrow_own(second));
}
#endif

/* The macros of the kernel text for OpenCL C 1.2. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define GLOBAL __global
#define RESTRICT restrict
#define POINTER(type, name) __global type restrict name
/* An array may begin anywhere in a buffer. */
#define ARRAY(type, name) __global type restrict name, int64 name##_offset
#define FIRST(name) (name + name##_offset)
#define FACES_PARAMETER
#define MAYBE_UNUSED __attribute__((unused))
#define INLINE static inline __attribute__((always_inline))
#define MANY_AT_ONCE INLINE
#define KERNEL(threads) __kernel void
typedef WIDE_FORMAT wide __attribute__((may_alias)); /* in an array of `store` */
#define STORE_BITS(field, index, bits) ((field)[index] = (bits))
#define STORE_LINE_BITS(field, index, k, bits) ((field)[index] = (bits))
#define STORE_LINE_BITS_WIDE(field, index, k, bits) (AT_WIDE(field, index) = (bits))
#define LINE_BITS(field, index, k) ((field)[index])
#define LINE_PARAMETERS
#define NODE_LINE_PARAMETERS
#define FORGET_ADDRESSES
#define POPCOUNT(bits) popcount((uint32)(bits))
#define LARGER(a, b) fmax(a, b)
#define SMALLER(a, b) fmin(a, b)
#ifdef STORE_HALF
INLINE float half_to_float(store bits) { return vload_half(0, (const half*)&bits); }
INLINE store float_to_half(float value)
{
  store bits;
  vstore_half_rte(value, 0, (half*)&bits);
  return bits;
}
#endif
#define quick_ratio(a, b) native_divide(a, b)
#define quick_log2(x) native_log2(x)

/* The values of cells x and x + 1 in one access. */
#define load_pair(from, first, second)                                                        \
  {                                                                                           \
    const STORE_TWO bits = *(__global const STORE_TWO*)(from);                                \
    first = widen_own(bits.x), second = widen_own(bits.y);                                    \
  }
#define store_pair(to, first, second) \
  *(__global STORE_TWO*)(to) = (STORE_TWO)(narrow_own(first), narrow_own(second))
#define send_pair(to, first, second) store_pair(to, first, second)

/* The coordinates of a thread. The host launches so many planes, or entries, as there are from `begin` to
   `end` in steps of `stride`. */
#define GROUP(axis) ((int64)get_group_id(axis))
#define THREAD(axis) ((int)get_local_id(axis))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define FOR_CELLS(function)                                                                   \
  const int x = (int)get_global_id(0), row = (int)get_global_id(1);                           \
  const int64 plane = begin + stride * GROUP(2);                                              \
  if (x < nx && row < rows && plane < end)                                                    \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), PASSED);
#define FOR_CELLS_SENT(function, send, count) FOR_CELLS(function)

/* Two cells, x and x + 1, a thread; the last cell of an odd row goes alone. A pair's x_p lies
   beyond both. */
#define FOR_PAIRS(function, pair)                                                             \
  const int x = 2 * (int)get_global_id(0), row = (int)get_global_id(1);                       \
  const int64 plane = begin + stride * GROUP(2);                                              \
  if (x >= nx || row >= rows || plane >= end) return;                                         \
  if (x + 1 < nx)                                                                             \
    pair(plane, row, NEIGHBOURS(row, rows), x, BEFORE(x, nx), AFTER(x + 1, nx), PASSED);      \
  else                                                                                        \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), PASSED);
#define FOR_PAIRS_SENT(function, pair, send, count) FOR_PAIRS(function, pair)

#define FOR_NODES(function)                                                                   \
  const int node = (int)get_global_id(0);                                                     \
  const int64 plane = begin + stride * GROUP(2);                                              \
  if (plane < end && node < FIRST(node_count)[plane]) function(plane, node, PASSED);
#define FOR_NODE_LINES(function, fetch, send, count) FOR_NODES(function)

#define FOR_ENTRIES(function)                                                                 \
  const int64 entry = begin + stride * (int64)get_global_id(0);                               \
  if (entry < end) function(entry, PASSED);

/* Sum k of a thread, in kernels that add. Sums are added in the order of the texts for C and CUDA. */
#define TOTAL(k) total[k]

/* A work-group for 32 columns of a plane: each thread adds a part of the rows; then the parts are added
   in their order. */
#define FOR_COLUMNS(function, count)                                                          \
  __local double partial[COLUMN_PARTS][count][32];                                            \
  const int lane = THREAD(0), part = THREAD(1), x = (int)GROUP(0) * 32 + lane;                \
  const int64 plane = begin + stride * GROUP(2);                                              \
  double total[count];                                                                        \
  for (int k = 0; k < count; k++) total[k] = 0;                                               \
  if (x < nx)                                                                                 \
    for (int row = PART_BEGIN(part); row < PART_BEGIN(part + 1); row++)                       \
      function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), total, PASSED);         \
  for (int k = 0; k < count; k++) partial[part][k][lane] = total[k];                          \
  BARRIER;                                                                                    \
  if (x < nx)                                                                                 \
    for (int k = part; k < count; k += COLUMN_PARTS) {                                        \
      __global double* sum = FIRST(sums) + ((plane - origin) * count + k) * nx + x;           \
      double added = *sum;                                                                    \
      for (int other = 0; other < COLUMN_PARTS; other++) added += partial[other][k][lane];    \
      *sum = added;                                                                           \
    }

/* A work-group for each plane: its threads fetch the numbers of some rows, and a thread for each column
   adds those of its column in the order of the rows. */
#define PLANE_THREADS 256
#define FETCHED 2048
#define FOR_PLANES(function)                                                                  \
  __local double fetched[FETCHED];                                                            \
  const int thread = THREAD(0), rows_at_once = FETCHED / columns;                             \
  const int64 plane = begin + stride * GROUP(0);                                              \
  double total = 0;                                                                           \
  for (int from = 0; from < rows; from += rows_at_once) {                                     \
    const int count = columns * (rows - from < rows_at_once ? rows - from : rows_at_once);    \
    __global const double* values = FIRST(row_sums) + (plane * rows + from) * columns;        \
    for (int k = thread; k < count; k += PLANE_THREADS) fetched[k] = values[k];               \
    BARRIER;                                                                                  \
    if (thread < columns)                                                                     \
      for (int k = thread; k < count; k += columns)                                           \
        function(thread, fetched[k], &total, PASSED);                                         \
    BARRIER;                                                                                  \
  }                                                                                           \
  if (thread < columns) FIRST(sum)[plane * columns + thread] = total;

#define FOR_CHUNKS(function, count)                                                           \
  __local double partial[CHUNK_THREADS][count];                                               \
  const int thread = THREAD(0);                                                               \
  const int64 chunk = begin + stride * GROUP(0);                                              \
  double total[count];                                                                        \
  for (int k = 0; k < count; k++) total[k] = 0;                                               \
  const int32 to = FIRST(chunk_first)[chunk + 1];                                             \
  for (int32 k = FIRST(chunk_first)[chunk] + thread; k < to; k += CHUNK_THREADS)              \
    function(FIRST(chunk_entry)[k], total, PASSED);                                           \
  for (int k = 0; k < count; k++) partial[thread][k] = total[k];                              \
  for (int half_of = CHUNK_THREADS / 2; half_of > 0; half_of /= 2) {                          \
    BARRIER;                                                                                  \
    if (thread < half_of)                                                                     \
      for (int k = 0; k < count; k++) partial[thread][k] += partial[thread + half_of][k];     \
  }                                                                                           \
  if (thread == 0)                                                                            \
    for (int k = 0; k < count; k++) FIRST(chunk_sums)[chunk * count + k] = partial[0][k];

/* ROW_LANES threads for each row, ROWS_AT_ONCE rows a work-group. Each thread adds every 32nd cell; then
   the partial sums of the row are added in a fixed tree. */
#define ROW_THREADS 128
#define ROWS_AT_ONCE (ROW_THREADS / ROW_LANES)
#define SUM_ROWS(count, maxima, assign, from, to, call)                                       \
  __local double partial[ROW_THREADS][count];                                                 \
  const int thread = THREAD(0), lane = thread % ROW_LANES;                                    \
  const int row = (int)GROUP(0) * ROWS_AT_ONCE + thread / ROW_LANES;                          \
  const int64 plane = begin + stride * GROUP(1);                                              \
  double total[count];                                                                        \
  for (int k = 0; k < count; k++) total[k] = 0;                                               \
  if (row < rows)                                                                             \
    for (int x = (from) + lane; x < (to); x += ROW_LANES) call;                               \
  for (int k = 0; k < count; k++) partial[thread][k] = total[k];                              \
  for (int half_of = ROW_LANES / 2; half_of > 0; half_of /= 2) {                              \
    BARRIER;                                                                                  \
    if (lane < half_of)                                                                       \
      for (int k = 0; k < count; k++)                                                         \
        partial[thread][k] = (maxima)                                                         \
                                 ? fmax(partial[thread][k], partial[thread + half_of][k])     \
                                 : partial[thread][k] + partial[thread + half_of][k];         \
  }                                                                                           \
  if (lane == 0 && row < rows)                                                                \
    for (int k = 0; k < count; k++)                                                           \
      FIRST(sums)[((plane - origin) * rows + row) * count + k] assign partial[thread][k];
#define FOR_ROWS(function, count, maxima, assign)      \
  SUM_ROWS(count, maxima, assign, 0, nx, \
           function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), total, PASSED))
#define FOR_NODE_ROWS(function, count, maxima, assign)      \
  SUM_ROWS(count, maxima, assign, FIRST_ROW_START(plane, row), FIRST_ROW_START(plane, row + 1), \
           function(plane, x, total, PASSED))
#define FIRST_ROW_START(plane, row) FIRST(node_row)[(plane) * (rows + 1) + (row)]

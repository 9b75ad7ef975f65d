/* The macros of the kernel text for CUDA compilers. */
/* Another GPU writes into the arrays that a JOINT kernel reads, so they must not be loaded as constants. */
#ifdef JOINT
#define RESTRICT
#define FACES_PARAMETER const Faces* faces,
#else
#define RESTRICT __restrict__
#define FACES_PARAMETER
#endif
#define GLOBAL
#define POINTER(type, name) type RESTRICT name
#define ARRAY(type, name) type RESTRICT name
#define FIRST(name) name
#define MAYBE_UNUSED [[maybe_unused]]
#define INLINE static __device__ __forceinline__
#define MANY_AT_ONCE INLINE
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
typedef WIDE_FORMAT wide;
#define STORE_BITS(field, index, bits) STREAM((field) + (index), bits)
#define STORE_LINE_BITS(field, index, k, bits) ((field)[index] = (bits))
#define STORE_LINE_BITS_WIDE(field, index, k, bits) (AT_WIDE(field, index) = (bits))
#define LINE_BITS(field, index, k) ((field)[index])
#define LINE_PARAMETERS
#define NODE_LINE_PARAMETERS
#define POPCOUNT(bits) __popc(bits)
#define LARGER(a, b) fmax(a, b)
#define SMALLER(a, b) fmin(a, b)

/* What HIP lacks. A wavefront of an AMD GPU has 64 threads or 32, and no code depends on that. */
#ifdef __HIP__
#define STREAM(to, value) (*(to) = (value))
#define SYNC_LANES __syncthreads()
#define FORGET_ADDRESSES
INLINE float half_to_float(unsigned short bits) { return (float)__builtin_bit_cast(_Float16, bits); }
INLINE unsigned short float_to_half(float value)
{
  return __builtin_bit_cast(unsigned short, (_Float16)value);
}
INLINE float quick_ratio(float a, float b) { return a * __builtin_amdgcn_rcpf(b); }
INLINE float quick_log2(float x) { return __log2f(x); }
#else
#define STREAM(to, value) __stcs(to, value)
#define SYNC_LANES __syncwarp()
#endif

/* All inline PTX; tests/emulation/cuda_emulation.h replaces it by C++ where there is no GPU. */
#if !defined(EMULATED) && !defined(__HIP__)
#ifdef STORE_HALF
INLINE float half_to_float(store bits)
{
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
INLINE store float_to_half(float value)
{
  store bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif
#ifdef INTRINSICS
INLINE float quick_ratio(float a, float b)
{
  float ratio;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(ratio) : "f"(a), "f"(b));
  return ratio;
}
INLINE float quick_log2(float x)
{
  float value;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
#endif
/* In-place kernels would keep all addresses in registers from the loads to the stores; computing
   them twice is cheaper than the threads that those registers cost. */
#define FORGET_ADDRESSES \
  asm volatile("" : "+r"(x), "+r"(x_m), "+r"(x_p), "+r"(row), "+r"(row_m), "+r"(row_p), "+l"(plane));
#endif

#define FOR_CELLS(function)                                                                   \
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                 \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x < nx && row < rows && plane < end)                                                    \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), PASSED);

#ifndef JOINT
#define FOR_CELLS_SENT(function, send, count) FOR_CELLS(function)
#else
#define FOR_CELLS_SENT(function, send, count)                                                 \
  FOR_CELLS_AND_FACES(                                                                        \
      1, function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), PASSED))
#endif

/* Sum k of a thread, in kernels that add. */
#define TOTAL(k) total[k]

/* A block for 32 columns of a plane: each thread adds a part of the rows; then the parts are added
   in their order. */
#define FOR_COLUMNS(function, count)                                                          \
  __shared__ double partial[COLUMN_PARTS][count][32];                                         \
  const int lane = (int)threadIdx.x, part = (int)threadIdx.y;                                 \
  const int x = (int)(blockIdx.x * 32) + lane;                                                \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  double total[count] = {0};                                                                  \
  if (x < nx)                                                                                 \
    for (int row = PART_BEGIN(part); row < PART_BEGIN(part + 1); row++)                       \
      function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), total, PASSED);         \
  for (int k = 0; k < count; k++) partial[part][k][lane] = total[k];                          \
  __syncthreads();                                                                            \
  if (x < nx)                                                                                 \
    for (int k = part; k < count; k += COLUMN_PARTS) {                                        \
      double* sum = sums + ((plane - origin) * count + k) * nx + x;                           \
      double added = *sum;                                                                    \
      for (int other = 0; other < COLUMN_PARTS; other++) added += partial[other][k][lane];    \
      *sum = added;                                                                           \
    }

/* Two cells, x and x + 1, a thread; the last cell of an odd row goes alone. A pair's x_p lies
   beyond both. */
#define PAIR(function, pair)                                                                  \
  if (x + 1 < nx)                                                                             \
    pair(plane, row, NEIGHBOURS(row, rows), x, BEFORE(x, nx), AFTER(x + 1, nx), PASSED);      \
  else                                                                                        \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), PASSED)

#define FOR_PAIRS(function, pair)                                                             \
  const int x = 2 * (int)(blockIdx.x * blockDim.x + threadIdx.x);                             \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x >= nx || row >= rows || plane >= end) return;                                         \
  PAIR(function, pair);

#ifndef JOINT
#define FOR_PAIRS_SENT(function, pair, send, count) FOR_PAIRS(function, pair)
#else
#define FOR_PAIRS_SENT(function, pair, send, count)      \
  FOR_CELLS_AND_FACES(2, PAIR(function, pair))
#endif

#define FOR_NODES(function)                                                                   \
  const int node = (int)(blockIdx.x * blockDim.x + threadIdx.x);                              \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (plane < end && node < node_count[plane]) function(plane, node, PASSED);

#define FOR_NODE_LINES(function, fetch, send, count) FOR_NODES(function)

#define FOR_ENTRIES(function)                                                                 \
  const int64 entry = begin + stride * ((int64)blockIdx.x * blockDim.x + threadIdx.x);        \
  if (entry < end) function(entry, PASSED);

/* A block for each plane: its threads fetch the numbers of some rows, and a thread for each column
   adds those of its column in the order of the rows. */
#define PLANE_THREADS 256
#define FETCHED 2048
#define FOR_PLANES(function)                                                                  \
  __shared__ double fetched[FETCHED];                                                         \
  const int thread = (int)threadIdx.x, rows_at_once = FETCHED / columns;                      \
  const int64 plane = begin + stride * (int64)blockIdx.x;                                     \
  double total = 0;                                                                           \
  for (int from = 0; from < rows; from += rows_at_once) {                                     \
    const int count = columns * (rows - from < rows_at_once ? rows - from : rows_at_once);    \
    const double* values = row_sums + (plane * rows + from) * columns;                        \
    for (int k = thread; k < count; k += PLANE_THREADS) fetched[k] = values[k];               \
    __syncthreads();                                                                          \
    if (thread < columns)                                                                     \
      for (int k = thread; k < count; k += columns)                                           \
        function(thread, fetched[k], &total, PASSED);                                         \
    __syncthreads();                                                                          \
  }                                                                                           \
  if (thread < columns) sum[plane * columns + thread] = total;

#define FOR_CHUNKS(function, count)                                                           \
  __shared__ double total[CHUNK_THREADS][count];                                              \
  const int thread = (int)threadIdx.x;                                                        \
  const int64 chunk = begin + stride * (int64)blockIdx.x;                                     \
  if (chunk >= end) return;                                                                   \
  for (int k = 0; k < count; k++) total[thread][k] = 0;                                       \
  const int32 to = chunk_first[chunk + 1];                                                    \
  for (int32 k = chunk_first[chunk] + thread; k < to; k += CHUNK_THREADS)                     \
    function(chunk_entry[k], total[thread], PASSED);                                          \
  for (int half = CHUNK_THREADS / 2; half > 0; half /= 2) {                                   \
    __syncthreads();                                                                          \
    if (thread < half)                                                                        \
      for (int k = 0; k < count; k++) total[thread][k] += total[thread + half][k];            \
  }                                                                                           \
  if (thread == 0)                                                                            \
    for (int k = 0; k < count; k++) chunk_sums[chunk * count + k] = total[0][k];

/* A warp for each row, ROWS_AT_ONCE rows a block. Each thread adds every 32nd cell; then the partial
   sums of the warp are added in a fixed tree. */
#define ROW_THREADS 128
#define ROWS_AT_ONCE (ROW_THREADS / ROW_LANES)
#define SUM_ROWS(count, maxima, assign, from, to, call)                                       \
  __shared__ double partial[ROW_THREADS][count];                                              \
  const int thread = (int)threadIdx.x, lane = thread % ROW_LANES;                             \
  const int row = (int)blockIdx.x * ROWS_AT_ONCE + thread / ROW_LANES;                        \
  const int64 plane = begin + stride * (int64)blockIdx.y;                                     \
  double total[count] = {0};                                                                  \
  if (row < rows)                                                                             \
    for (int x = (from) + lane; x < (to); x += ROW_LANES) call;                               \
  for (int k = 0; k < count; k++) partial[thread][k] = total[k];                              \
  for (int half = ROW_LANES / 2; half > 0; half /= 2) {                                       \
    SYNC_LANES;                                                                               \
    if (lane < half)                                                                          \
      for (int k = 0; k < count; k++)                                                         \
        partial[thread][k] = (maxima)                                                         \
                                 ? fmax(partial[thread][k], partial[thread + half][k])        \
                                 : partial[thread][k] + partial[thread + half][k];            \
  }                                                                                           \
  if (lane == 0 && row < rows)                                                                \
    for (int k = 0; k < count; k++)                                                           \
      sums[((plane - origin) * rows + row) * count + k] assign partial[thread][k];
#define FOR_ROWS(function, count, maxima, assign)      \
  SUM_ROWS(count, maxima, assign, 0, nx, \
           function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), total, PASSED))
#define FOR_NODE_ROWS(function, count, maxima, assign)      \
  SUM_ROWS(count, maxima, assign, ROW_START(plane, row), ROW_START(plane, row + 1), \
           function(plane, x, total, PASSED))

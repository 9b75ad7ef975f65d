/* The macros of the kernel text for CUDA compilers. */
#define RESTRICT __restrict__
#define MAYBE_UNUSED [[maybe_unused]]
#define INLINE static __device__ __forceinline__
#define MANY_AT_ONCE INLINE
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
typedef WIDE_FORMAT wide;
#define STORE_BITS(field, index, bits) __stcs((field) + (index), bits)
#define STORE_LINE_BITS(field, index, k, bits) ((field)[index] = (bits))
#define STORE_LINE_BITS_WIDE(field, index, k, bits) (AT_WIDE(field, index) = (bits))
#define LINE_BITS(field, index, k) ((field)[index])
#define LINE_PARAMETERS
#define NODE_LINE_PARAMETERS
#define POPCOUNT(bits) __popc(bits)
#define LARGER(a, b) fmax(a, b)
#define SMALLER(a, b) fmin(a, b)

/* All inline PTX; tests/emulation/cuda_emulation.h replaces it by C++ where there is no GPU. */
#ifndef EMULATED
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
#define FORGET_ADDRESSES asm volatile("" : "+r"(x), "+r"(x_m), "+r"(x_p), "+r"(row), "+r"(row_m), "+r"(row_p));
#endif

#define FOR_CELLS(function, ...)                                                              \
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                 \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x < nx && row < rows && plane < end)                                                    \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), __VA_ARGS__);

#define FOR_CELLS_SENT(function, send, count, ...) FOR_CELLS(function, __VA_ARGS__)

/* One thread for all rows at an x of a plane, one after another. */
#define FOR_COLUMNS(function, ...)                                                            \
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                 \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x < nx && plane < end)                                                                  \
    for (int row = 0; row < rows; row++)                                                      \
      function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), __VA_ARGS__);

/* Two cells, x and x + 1, a thread; the last cell of an odd row goes alone. A pair's x_p lies
   beyond both. */
#define FOR_PAIRS(function, pair, ...)                                                        \
  const int x = 2 * (int)(blockIdx.x * blockDim.x + threadIdx.x);                             \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x >= nx || row >= rows || plane >= end) return;                                         \
  if (x + 1 < nx)                                                                             \
    pair(plane, row, NEIGHBOURS(row, rows), x, BEFORE(x, nx), AFTER(x + 1, nx), __VA_ARGS__); \
  else                                                                                        \
    function(plane, row, NEIGHBOURS(row, rows), x, X_NEIGHBOURS(x), __VA_ARGS__);

#define FOR_PAIRS_SENT(function, pair, send, count, ...) FOR_PAIRS(function, pair, __VA_ARGS__)

#define FOR_NODES(function, ...)                                                              \
  const int node = (int)(blockIdx.x * blockDim.x + threadIdx.x);                              \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (plane < end && node < node_count[plane]) function(plane, node, __VA_ARGS__);

#define FOR_NODE_LINES(function, fetch, send, count, ...) FOR_NODES(function, __VA_ARGS__)

#define FOR_ENTRIES(function, ...)                                                            \
  const int64 entry = begin + stride * ((int64)blockIdx.x * blockDim.x + threadIdx.x);        \
  if (entry < end) function(entry, __VA_ARGS__);

/* One block of ROW_THREADS threads a row; its partial sums are added in a fixed tree. */
#define ROW_THREADS 128
#define SUM_ROWS(count, maxima, assign, from, to, call)                                       \
  __shared__ double partial[ROW_THREADS][count];                                              \
  const int row = (int)blockIdx.x, thread = (int)threadIdx.x;                                 \
  const int64 plane = begin + stride * (int64)blockIdx.y;                                     \
  if (plane >= end) return;                                                                   \
  for (int k = 0; k < count; k++) partial[thread][k] = 0;                                     \
  double* total = partial[thread];                                                            \
  for (int x = (from) + thread; x < (to); x += ROW_THREADS) call;                             \
  for (int half = ROW_THREADS / 2; half > 0; half /= 2) {                                     \
    __syncthreads();                                                                          \
    if (thread < half)                                                                        \
      for (int k = 0; k < count; k++)                                                         \
        partial[thread][k] = (maxima) >> k & 1                                                \
                                 ? fmax(partial[thread][k], partial[thread + half][k])        \
                                 : partial[thread][k] + partial[thread + half][k];            \
  }                                                                                           \
  if (thread == 0)                                                                            \
    for (int k = 0; k < count; k++) sums[((plane - origin) * rows + row) * count + k] assign partial[0][k];

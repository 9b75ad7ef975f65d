/* One text for C11 and CUDA. A kernel is a cell function (or row, or entry function) and a driver
   from this prelude that calls it for all cells of the planes begin, begin + stride, ... < end. */
typedef long long int64;
typedef int int32;
typedef unsigned int uint32;
typedef unsigned char uint8;

#define R(value) ((real)(value))
#define LOAD(field, index) ((real)(field)[index])
#define STORE_REAL(field, index, value) ((field)[index] = (real)(value))
#define NEIGHBOURS(i, n) ((i) > 0 ? (i) - 1 : (n) - 1), ((i) + 1 < (n) ? (i) + 1 : 0)

#ifdef __CUDACC__

#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define STORE(field, index, value) __stcs((field) + (index), (store)(value))
/* In-place kernels would keep all addresses in registers from the loads to the stores; computing
   them twice is cheaper than the threads that those registers cost. */
#define FORGET_ADDRESSES asm volatile("" : "+r"(x), "+r"(x_m), "+r"(x_p), "+r"(row), "+r"(row_m), "+r"(row_p));

#define FOR_CELLS(function, ...)                                                              \
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                 \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x < nx && row < rows && plane < end)                                                    \
    function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), __VA_ARGS__);

#define FOR_ENTRIES(function, ...)                                                            \
  const int64 entry = begin + stride * ((int64)blockIdx.x * blockDim.x + threadIdx.x);        \
  if (entry < end) function(entry, __VA_ARGS__);

/* One block of ROW_THREADS threads a row; its partial sums are added in a fixed tree. */
#define ROW_THREADS 128
#define FOR_ROWS(function, count, maxima, ...)                                                \
  __shared__ double partial[ROW_THREADS][count];                                              \
  const int row = (int)blockIdx.x, thread = (int)threadIdx.x;                                 \
  const int64 plane = begin + stride * (int64)blockIdx.y;                                     \
  if (plane >= end) return;                                                                   \
  for (int k = 0; k < count; k++) partial[thread][k] = 0;                                     \
  for (int x = thread; x < nx; x += ROW_THREADS)                                              \
    function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), partial[thread], __VA_ARGS__); \
  for (int half = ROW_THREADS / 2; half > 0; half /= 2) {                                     \
    __syncthreads();                                                                          \
    if (thread < half)                                                                        \
      for (int k = 0; k < count; k++)                                                         \
        partial[thread][k] = (maxima) >> k & 1                                                \
                                 ? fmax(partial[thread][k], partial[thread + half][k])        \
                                 : partial[thread][k] + partial[thread + half][k];            \
  }                                                                                           \
  if (thread == 0)                                                                            \
    for (int k = 0; k < count; k++) sums[((plane - origin) * rows + row) * count + k] = partial[0][k];

#else

#include <math.h>
#include <stdint.h>
#define RESTRICT restrict
#define INLINE static inline __attribute__((always_inline))
#define KERNEL(threads) void
#define STORE(field, index, value) ((field)[index] = (store)(value))
#define FORGET_ADDRESSES

/* Denormal numbers cost a hundred times more on CPUs and mean nothing in a flow. */
#if defined(__x86_64__)
#include <xmmintrin.h>
#define FLUSH_DENORMALS const unsigned saved = _mm_getcsr(); _mm_setcsr(saved | 0x8040);
#define RESTORE_DENORMALS _mm_setcsr(saved);
#else
#define FLUSH_DENORMALS
#define RESTORE_DENORMALS
#endif

#define FOR_CELLS(function, ...)                                                              \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int row_m = row > 0 ? row - 1 : rows - 1, row_p = row + 1 < rows ? row + 1 : 0;   \
      function(plane, row, row_m, row_p, 0, nx - 1, nx > 1 ? 1 : 0, __VA_ARGS__);             \
      _Pragma("omp simd") for (int x = 1; x < nx - 1; x++)                                    \
          function(plane, row, row_m, row_p, x, x - 1, x + 1, __VA_ARGS__);                   \
      if (nx > 1) function(plane, row, row_m, row_p, nx - 1, nx - 2, 0, __VA_ARGS__);         \
    }                                                                                         \
  RESTORE_DENORMALS

#define FOR_ENTRIES(function, ...)                                                            \
  FLUSH_DENORMALS                                                                             \
  for (int64 entry = begin; entry < end; entry += stride) function(entry, __VA_ARGS__);       \
  RESTORE_DENORMALS

#define FOR_ROWS(function, count, maxima, ...)                                                \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      double total[count] = {0};                                                              \
      for (int x = 0; x < nx; x++)                                                            \
        function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), total, __VA_ARGS__); \
      for (int k = 0; k < count; k++) sums[((plane - origin) * rows + row) * count + k] = total[k]; \
    }                                                                                         \
  RESTORE_DENORMALS

#endif

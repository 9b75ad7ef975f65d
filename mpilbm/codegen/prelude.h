/* One text for C11 and CUDA. A kernel is a cell function (or row, or entry function) and a driver
   from this prelude that calls it for all cells of the planes begin, begin + stride, ... < end. */
typedef long long int64;
typedef int int32;
typedef unsigned int uint32;
typedef unsigned char uint8;

#define R(value) ((real)(value))
#define LOAD(field, index) widen((field)[index])
#define LOAD_OWN(field, index) widen_own((field)[index])
#define STORE(field, index, value) STORE_BITS(field, index, narrow(value))
#define STORE_OWN(field, index, value) STORE_BITS(field, index, narrow_own(value))
#define STORE_LINE(field, index, k, value) STORE_LINE_BITS(field, index, k, narrow(value))
#define STORE_LINE_OWN(field, index, k, value) STORE_LINE_BITS(field, index, k, narrow_own(value))
#define LOAD_LINE(field, index, k) widen(LINE_BITS(field, index, k))
#define LOAD_LINE_OWN(field, index, k) widen_own(LINE_BITS(field, index, k))
#define STORE_HERE(field, index, value) ((field)[index] = narrow(value))
#define COPY(field, index, bits) ((field)[index] = (bits))
#define STORE_REAL(field, index, value) ((field)[index] = (real)(value))
#ifdef FUSED
#define MAD(a, b, c) fma(a, b, c)
#define NMAD(a, b, c) fma(-(a), b, c)
#else
#define MAD(a, b, c) ((c) + (a) * (b))
#define NMAD(a, b, c) ((c) - (a) * (b))
#endif
#define NEIGHBOURS(i, n) ((i) > 0 ? (i) - 1 : (n) - 1), ((i) + 1 < (n) ? (i) + 1 : 0)

#ifdef __CUDACC__

#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define STORE_BITS(field, index, bits) __stcs((field) + (index), bits)
#define STORE_LINE_BITS(field, index, k, bits) ((field)[index] = (bits))
#define LINE_BITS(field, index, k) ((field)[index])
#define LINE_PARAMETERS
#define NODE_LINE_PARAMETERS
#define POPCOUNT(bits) __popc(bits)

/* All inline PTX; without a GPU tests/emulation/cuda_emulation.h has it in C++. */
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
/* In-place kernels would keep all addresses in registers from the loads to the stores; computing
   them twice is cheaper than the threads that those registers cost. */
#define FORGET_ADDRESSES asm volatile("" : "+r"(x), "+r"(x_m), "+r"(x_p), "+r"(row), "+r"(row_m), "+r"(row_p));
#endif

#define FOR_CELLS(function, ...)                                                              \
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                                 \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x < nx && row < rows && plane < end)                                                    \
    function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), __VA_ARGS__);

#define FOR_CELLS_SENT(function, send, count, ...) FOR_CELLS(function, __VA_ARGS__)

/* Two cells, x and x + 1, a thread; the last cell of an odd row goes alone. A pair's x_p lies
   beyond both. */
#define FOR_PAIRS(function, pair, ...)                                                        \
  const int x = 2 * (int)(blockIdx.x * blockDim.x + threadIdx.x);                             \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = begin + stride * (int64)blockIdx.z;                                     \
  if (x >= nx || row >= rows || plane >= end) return;                                         \
  if (x + 1 < nx)                                                                             \
    pair(plane, row, NEIGHBOURS(row, rows), x, x > 0 ? x - 1 : nx - 1, x + 2 < nx ? x + 2 : 0, \
         __VA_ARGS__);                                                                        \
  else                                                                                        \
    function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), __VA_ARGS__);

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
#define SUM_ROWS(count, maxima, from, to, call)                                               \
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
    for (int k = 0; k < count; k++) sums[((plane - origin) * rows + row) * count + k] = partial[0][k];

#else

#include <tgmath.h>
#include <string.h>
#define RESTRICT restrict
#define INLINE static inline __attribute__((always_inline))
#define KERNEL(threads) void
#define STORE_BITS(field, index, bits) ((field)[index] = (bits))
#define FORGET_ADDRESSES
#define POPCOUNT(bits) __builtin_popcount(bits)
#ifdef STORE_HALF
typedef union { store bits; _Float16 value; } half_bits;
INLINE float half_to_float(store bits) { return (float)((half_bits){.bits = bits}).value; }
INLINE store float_to_half(float value) { return ((half_bits){.value = (_Float16)value}).bits; }
#endif

/* Stores to an array that is not read are collected for LINE cells of a row, then sent past the
   caches: an ordinary store first reads what it overwrites. Lines start at multiples of 64 bytes. */
#define LINE 64
#define LINE_PARAMETERS store (*line)[LINE], int line_at,
#define STORE_LINE_BITS(field, index, k, bits) (line[k][line_at] = (bits))
#define LINE_BITS(field, index, k) (line[k][line_at])

/* Denormal numbers cost a hundred times more on CPUs and mean nothing in a flow. */
#if defined(__x86_64__)
#include <immintrin.h>
#define FLUSH_DENORMALS const unsigned saved = _mm_getcsr(); _mm_setcsr(saved | 0x8040);
#define RESTORE_DENORMALS _mm_setcsr(saved); _mm_sfence();
#else
#define FLUSH_DENORMALS
#define RESTORE_DENORMALS
#endif

#define FOR_CELLS(function, ...)                                                              \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int row_m = row > 0 ? row - 1 : rows - 1, row_p = row + 1 < rows ? row + 1 : 0;   \
      _Pragma("omp simd") for (int x = 1; x < nx - 1; x++)                                    \
          function(plane, row, row_m, row_p, x, x - 1, x + 1, __VA_ARGS__);                   \
      for (int side = nx == 1; side < 2; side++) {                                            \
        const int x = side ? nx - 1 : 0;                                                      \
        function(plane, row, row_m, row_p, x, NEIGHBOURS(x, nx), __VA_ARGS__);                \
      }                                                                                       \
    }                                                                                         \
  RESTORE_DENORMALS

INLINE void stream_out(store* to, const store* from, int count)
{
  int done = 0;
#if defined(__AVX512F__)
  for (; done + 64 / (int)sizeof(store) <= count; done += 64 / sizeof(store))
    _mm512_stream_si512((__m512i*)(to + done), _mm512_load_si512((const __m512i*)(from + done)));
#elif defined(__AVX__)
  for (; done + 32 / (int)sizeof(store) <= count; done += 32 / sizeof(store))
    _mm256_stream_si256((__m256i*)(to + done), _mm256_load_si256((const __m256i*)(from + done)));
#endif
  memcpy(to + done, from + done, (count - done) * sizeof(store));
}

/* While stores drain, fetch what the next line of cells reads: it follows in memory. */
INLINE void ahead(const store* from)
{
  for (int k = LINE; k < 2 * LINE; k += 64 / sizeof(store)) __builtin_prefetch(from + k);
}

/* All cells of a line run as if neither end wrapped around, so that vectors start at whole cache
   lines; the two cells that do wrap are then computed again, before anything is sent. */
#define FOR_CELLS_SENT(function, send, values, ...)                                           \
  FLUSH_DENORMALS                                                                             \
  store line[values][LINE] __attribute__((aligned(64)));                                      \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int row_m = row > 0 ? row - 1 : rows - 1, row_p = row + 1 < rows ? row + 1 : 0;   \
      for (int start = 0; start < nx; start += LINE) {                                        \
        const int stop = start + LINE < nx ? start + LINE : nx;                               \
        _Pragma("omp simd") for (int x = start; x < stop; x++)                                \
            function(line, x - start, plane, row, row_m, row_p, x, x - 1, x + 1, __VA_ARGS__); \
        for (int side = start > 0 || nx == 1; side < 1 + (stop == nx); side++) {              \
          const int x = side ? nx - 1 : 0;                                                    \
          function(line, x - start, plane, row, row_m, row_p, x, NEIGHBOURS(x, nx), __VA_ARGS__); \
        }                                                                                     \
        send(line, 0, stop - start, plane, row, row_m, row_p, start, 0, 0, __VA_ARGS__);  \
      }                                                                                       \
    }                                                                                         \
  RESTORE_DENORMALS

#define FOR_PAIRS(function, pair, ...) FOR_CELLS(function, __VA_ARGS__)
#define FOR_PAIRS_SENT(function, pair, ...) FOR_CELLS_SENT(function, __VA_ARGS__)

#define FOR_NODES(function, ...)                                                              \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride) {                                   \
    const int count = node_count[plane];                                                      \
    _Pragma("omp simd") for (int node = 0; node < count; node++)                              \
        function(plane, node, __VA_ARGS__);                                                   \
  }                                                                                           \
  RESTORE_DENORMALS

/* Values that tables point to are fetched into lines, and sent from lines, by runs of consecutive
   numbers or else one by one: gather and scatter instructions take twice as long. Long lines,
   since memory is quick only where it is read for a while. */
#define NODE_LINE 256
#define NODE_LINE_PARAMETERS store (*line)[NODE_LINE], int line_at,
#define RUN 16
#define ONE_BY_ONE __asm__ volatile("");

INLINE int consecutive(const int32* next)
{
#if defined(__AVX512F__)
  const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i run = _mm512_add_epi32(_mm512_set1_epi32(next[0]), steps);
  return _mm512_cmpeq_epi32_mask(run, _mm512_loadu_si512(next)) == 0xffff;
#else
  int32 off = 0;
  for (int k = 1; k < RUN; k++) off |= next[k] - next[0] - k;
  return off == 0;
#endif
}

#define BY_RUNS(whole, single)                                                                \
  int k = 0;                                                                                  \
  for (; k + RUN <= count; k += RUN)                                                          \
    if (consecutive(next + k)) whole;                                                         \
    else                                                                                      \
      for (int j = k; j < k + RUN; j++) { ONE_BY_ONE single; }                                \
  for (int j = k; j < count; j++) { ONE_BY_ONE single; }

INLINE void fetch_line(store* to, const store* from, const int32* next, int count)
{
  BY_RUNS(memcpy(to + k, from + next[k], RUN * sizeof(store)), to[j] = from[next[j]])
}
INLINE void scatter_line(store* to, const store* from, const int32* next, int count)
{
  BY_RUNS(memcpy(to + next[k], from + k, RUN * sizeof(store)), to[next[j]] = from[j])
}
#define FETCH(field, base, entry, k) fetch_line(line[k], field + base, node_next + entry, count)
#define SCATTER(field, base, entry, k) scatter_line(field + base, line[k], node_next + entry, count)

#define FOR_NODE_LINES(function, fetch, send, values, ...)                                    \
  FLUSH_DENORMALS                                                                             \
  store line[values][NODE_LINE] __attribute__((aligned(64)));                                 \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int start = 0; start < node_count[plane]; start += NODE_LINE) {                      \
      const int left = node_count[plane] - start, count = left < NODE_LINE ? left : NODE_LINE; \
      fetch(line, 0, count, plane, start, __VA_ARGS__);                                       \
      _Pragma("omp simd") for (int k = 0; k < count; k++)                                     \
          function(line, k, plane, start + k, __VA_ARGS__);                                   \
      send(line, 0, count, plane, start, __VA_ARGS__);                                        \
    }                                                                                         \
  RESTORE_DENORMALS

#define FOR_ENTRIES(function, ...)                                                            \
  FLUSH_DENORMALS                                                                             \
  for (int64 entry = begin; entry < end; entry += stride) function(entry, __VA_ARGS__);       \
  RESTORE_DENORMALS

#define SUM_ROWS(count, maxima, from, to, call)                                               \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      double total[count] = {0};                                                              \
      for (int x = (from); x < (to); x++) call;                                               \
      for (int k = 0; k < count; k++) sums[((plane - origin) * rows + row) * count + k] = total[k]; \
    }                                                                                         \
  RESTORE_DENORMALS

#endif

#define FOR_ROWS(function, count, maxima, ...) \
  SUM_ROWS(count, maxima, 0, nx, \
           function(plane, row, NEIGHBOURS(row, rows), x, NEIGHBOURS(x, nx), total, __VA_ARGS__))
#define ROW_START(plane, row) node_row[(plane) * (rows + 1) + (row)]
#define FOR_NODE_ROWS(function, count, maxima, ...) \
  SUM_ROWS(count, maxima, ROW_START(plane, row), ROW_START(plane, row + 1), \
           function(plane, x, total, __VA_ARGS__))

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
INLINE real widen(store bits) { return widen_own(bits) * (R(1) / R(SCALE)); }
INLINE store narrow(real value) { return narrow_own(value * R(SCALE)); }

#ifdef __CUDACC__
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
  __stcs((store2*)to, two(narrow_own(first), narrow_own(second)));
}
INLINE void send_pair(store* to, real first, real second)
{
  *(store2*)to = two(narrow_own(first), narrow_own(second));
}
#endif

/* The macros of the kernel text for C compilers. */
#include <tgmath.h>
#include <string.h>
/* All cell functions have the same parameters; a function may leave some unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define RESTRICT restrict
#define GLOBAL
#define POINTER(type, name) type RESTRICT name
#define ARRAY(type, name) type RESTRICT name
#define FIRST(name) name
#define FACES_PARAMETER
#define MAYBE_UNUSED __attribute__((unused))
#define INLINE MAYBE_UNUSED static inline __attribute__((always_inline))
#define KERNEL(threads) void
/* A function that loops call with whole vectors; inlined a hundred times, it takes long to compile. */
#define MANY_AT_ONCE _Pragma("omp declare simd notinbranch") MAYBE_UNUSED static __attribute__((noinline))
typedef WIDE_FORMAT wide __attribute__((may_alias)); /* in an array of `store` */
#define STORE_BITS(field, index, bits) ((field)[index] = (bits))
#define FORGET_ADDRESSES
#define LARGER(a, b) larger(a, b)
#define SMALLER(a, b) smaller(a, b)
INLINE real larger(real a, real b) { return a > b ? a : b; }
INLINE real smaller(real a, real b) { return a < b ? a : b; }
#define POPCOUNT(bits) __builtin_popcount(bits)
#ifdef STORE_HALF
#if defined(__clang__) && __clang_major__ < 15 /* which have no _Float16 on x86 */
typedef __fp16 half;
#else
typedef _Float16 half;
#endif
typedef union { store bits; half value; } half_bits;
INLINE float half_to_float(store bits) { return (float)((half_bits){.bits = bits}).value; }
INLINE store float_to_half(float value) { return ((half_bits){.value = (half)value}).bits; }
#endif

/* Stores to an array that is not read are collected for LINE cells of a row, then sent past the
   caches: an ordinary store first reads what it overwrites. Lines start at multiples of 64 bytes.
   128 bytes in every precision: with longer lines, those of 27 populations displace what `ahead`
   has fetched from the first cache. */
#define LINE (128 / (int)sizeof(store))
#define LINE_PARAMETERS store (*line)[LINE], int line_at,
#define STORE_LINE_BITS(field, index, k, bits) (line[k][line_at] = (bits))
#define STORE_LINE_BITS_WIDE(field, index, k, bits) (((wide*)(line + (k)))[line_at] = (bits))
#define LINE_BITS(field, index, k) (line[k][line_at])

/* NO_LINES: no kernel uses line buffers. To read immintrin.h takes longer than to compile such kernels, and
   with -O0 any kernel: -DNO_VECTORS leaves it out, too.
   Denormal numbers cost a hundred times more on CPUs and mean nothing in a flow. */
#if defined(__x86_64__)
#if defined(NO_LINES) || defined(NO_VECTORS)
#include <xmmintrin.h>
#else
#define VECTORS
#include <immintrin.h>
#endif
#define FLUSH_DENORMALS const unsigned saved = _mm_getcsr(); _mm_setcsr(saved | 0x8040);
#define RESTORE_DENORMALS _mm_setcsr(saved); _mm_sfence();
#else
#define FLUSH_DENORMALS
#define RESTORE_DENORMALS
#endif

#define FOR_CELLS(function)                                                                   \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int row_m = row > 0 ? row - 1 : rows - 1, row_p = row + 1 < rows ? row + 1 : 0;   \
      _Pragma("omp simd") for (int x = 1; x < nx - 1; x++)                                    \
          function(plane, row, row_m, row_p, x, STEPS(x), PASSED);                        \
      for (int side = nx == 1; side < 2; side++) {                                            \
        const int x = side ? nx - 1 : 0;                                                      \
        function(plane, row, row_m, row_p, x, X_NEIGHBOURS(x), PASSED);                     \
      }                                                                                       \
    }                                                                                         \
  RESTORE_DENORMALS

INLINE void stream_out(store* to, const store* from, int count)
{
  int done = 0;
#if defined(__AVX512F__) && defined(VECTORS)
  for (; done + 64 / (int)sizeof(store) <= count; done += 64 / sizeof(store))
    _mm512_stream_si512((__m512i*)(to + done), _mm512_load_si512((const __m512i*)(from + done)));
#elif defined(__AVX__) && defined(VECTORS)
  for (; done + 32 / (int)sizeof(store) <= count; done += 32 / sizeof(store))
    _mm256_stream_si256((__m256i*)(to + done), _mm256_load_si256((const __m256i*)(from + done)));
#endif
  memcpy(to + done, from + done, (count - done) * sizeof(store));
}

/* While stores drain, fetch 128 bytes of what is read four lines further on: it follows in memory.
   What the next line reads would come too late. */
INLINE void ahead(const store* from)
{
  for (int k = 4 * LINE; k < 5 * LINE; k += 64 / sizeof(store)) __builtin_prefetch(from + k);
}

/* All cells of a line run as if neither end wrapped around, so that vectors start at whole cache
   lines; the two cells that do wrap are then computed again, before anything is sent. */
#define FOR_CELLS_SENT(function, send, values)                                                \
  FLUSH_DENORMALS                                                                             \
  store line[values][LINE] __attribute__((aligned(64)));                                      \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int row_m = row > 0 ? row - 1 : rows - 1, row_p = row + 1 < rows ? row + 1 : 0;   \
      for (int start = 0; start < nx; start += LINE) {                                        \
        const int stop = start + LINE < nx ? start + LINE : nx;                               \
        _Pragma("omp simd") for (int x = start; x < stop; x++)                                \
            function(line, x - start, plane, row, row_m, row_p, x, STEPS(x), PASSED);      \
        for (int side = start > 0 || nx == 1; side < 1 + (stop == nx); side++) {              \
          const int x = side ? nx - 1 : 0;                                                    \
          function(line, x - start, plane, row, row_m, row_p, x, X_NEIGHBOURS(x), PASSED); \
        }                                                                                     \
        send(line, 0, stop - start, plane, row, row_m, row_p, start, STEPS(start), PASSED); \
      }                                                                                       \
    }                                                                                         \
  RESTORE_DENORMALS

/* Cells start, ..., stop - 1 of a row from, ..., to - 1: `inner` is the work of cell x without
   wrapping around, in vectors, and `ends` that of the first and the last cell of the row. Sums of
   neighbouring cells are numbers side by side. */
#define PARTIAL_SUMS(from, start, stop, to, inner, ends)                                      \
  _Pragma("omp simd") for (int x = start + (start == from); x < stop - (stop == to); x++) {   \
    double* total = &partial[0][x - start];                                                   \
    inner;                                                                                    \
  }                                                                                           \
  for (int side = start > from || from + 1 == to; side < 1 + (stop == to); side++) {          \
    const int x = side ? to - 1 : from;                                                       \
    double* total = &partial[0][x - start];                                                   \
    ends;                                                                                     \
  }
#define COLUMNS 128
#define TOTAL(k) total[(k) * COLUMNS]

/* Sums over the rows at each x, in the order of the CUDA text: parts of the rows, one after another. */
#define FOR_COLUMNS(function, count)                                                          \
  FLUSH_DENORMALS                                                                             \
  double partial[count][COLUMNS];                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int start = 0; start < nx; start += COLUMNS) {                                       \
      const int stop = start + COLUMNS < nx ? start + COLUMNS : nx;                           \
      for (int part = 0; part < COLUMN_PARTS; part++) {                                       \
        memset(partial, 0, sizeof partial);                                                   \
        for (int row = PART_BEGIN(part); row < PART_BEGIN(part + 1); row++) {                 \
          const int row_m = BEFORE(row, rows), row_p = AFTER(row, rows);                      \
          PARTIAL_SUMS(0, start, stop, nx,                                                    \
                       function(plane, row, row_m, row_p, x, STEPS(x), total, PASSED),        \
                       function(plane, row, row_m, row_p, x, X_NEIGHBOURS(x), total, PASSED)) \
        }                                                                                     \
        for (int k = 0; k < count; k++)                                                       \
          for (int x = start; x < stop; x++)                                                  \
            sums[((plane - origin) * count + k) * nx + x] += partial[k][x - start];           \
      }                                                                                       \
    }                                                                                         \
  RESTORE_DENORMALS

#define FOR_PAIRS(function, pair) FOR_CELLS(function)
#define FOR_PAIRS_SENT(function, pair, send, values) FOR_CELLS_SENT(function, send, values)

#define FOR_NODES(function)                                                                   \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride) {                                   \
    const int count = node_count[plane];                                                      \
    _Pragma("omp simd") for (int node = 0; node < count; node++)                              \
        function(plane, node, PASSED);                                                        \
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
#if defined(__AVX512F__) && defined(VECTORS)
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

#define FOR_NODE_LINES(function, fetch, send, values)                                         \
  FLUSH_DENORMALS                                                                             \
  store line[values][NODE_LINE] __attribute__((aligned(64)));                                 \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int start = 0; start < node_count[plane]; start += NODE_LINE) {                      \
      const int left = node_count[plane] - start, count = left < NODE_LINE ? left : NODE_LINE; \
      fetch(line, 0, count, plane, start, PASSED);                                            \
      _Pragma("omp simd") for (int k = 0; k < count; k++)                                     \
          function(line, k, plane, start + k, PASSED);                                        \
      send(line, 0, count, plane, start, PASSED);                                             \
    }                                                                                         \
  RESTORE_DENORMALS

#define FOR_ENTRIES(function)                                                                 \
  FLUSH_DENORMALS                                                                             \
  for (int64 entry = begin; entry < end; entry += stride) function(entry, PASSED);            \
  RESTORE_DENORMALS

/* Adds the numbers of rows in each column of a plane, in the order of the rows. */
#define FOR_PLANES(function)                                                                  \
  FLUSH_DENORMALS                                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int column = 0; column < columns; column++) {                                        \
      const double* values = row_sums + plane * rows * columns + column;                      \
      double total = 0;                                                                       \
      for (int row = 0; row < rows; row++)                                                    \
        function(column, values[(int64)row * columns], &total, PASSED);                       \
      sum[plane * columns + column] = total;                                                  \
    }                                                                                         \
  RESTORE_DENORMALS

/* Of `half` pairs of partial sums each sum, or the larger one. Constant loops become vectors; all sums
   take a step before the next step, which would wait for them. */
#define HALVE(count, maxima, half)                                                            \
  for (int k = 0; k < count; k++)                                                             \
    if (maxima)                                                                               \
      for (int at = 0; at < half; at++) partial[k][at] = fmax(partial[k][at], partial[k][at + half]); \
    else                                                                                      \
      for (int at = 0; at < half; at++) partial[k][at] += partial[k][at + half];

#define FOR_CHUNKS(function, count)                                                           \
  FLUSH_DENORMALS                                                                             \
  for (int64 chunk = begin; chunk < end; chunk += stride) {                                   \
    double total[CHUNK_THREADS][count] = {{0}};                                               \
    const int32 from = chunk_first[chunk], to = chunk_first[chunk + 1];                       \
    for (int32 k = from; k < to; k++)                                                         \
      function(chunk_entry[k], total[(k - from) % CHUNK_THREADS], PASSED);                    \
    for (int half = CHUNK_THREADS / 2; half > 0; half /= 2)                                   \
      for (int thread = 0; thread < half; thread++)                                           \
        for (int k = 0; k < count; k++) total[thread][k] += total[thread + half][k];          \
    for (int k = 0; k < count; k++) chunk_sums[chunk * count + k] = total[0][k];              \
  }                                                                                           \
  RESTORE_DENORMALS

/* As the CUDA text: cells x, x + ROW_LANES, ... have a sum of their own; these are added in a tree. */
#define SUM_ROWS(count, maxima, assign, from, to, inner, ends)                                \
  FLUSH_DENORMALS                                                                             \
  double partial[count][COLUMNS];                                                             \
  for (int64 plane = begin; plane < end; plane += stride)                                     \
    for (int row = 0; row < rows; row++) {                                                    \
      const int from_x = from, to_x = to;                                                     \
      MAYBE_UNUSED const int row_m = BEFORE(row, rows), row_p = AFTER(row, rows);             \
      for (int k = 0; k < count; k++) memset(partial[k], 0, ROW_LANES * sizeof(double));      \
      for (int start = from_x; start < to_x; start += ROW_LANES) {                            \
        const int stop = start + ROW_LANES < to_x ? start + ROW_LANES : to_x;                 \
        PARTIAL_SUMS(from_x, start, stop, to_x, inner, ends)                                  \
      }                                                                                       \
      HALVE(count, maxima, 16) HALVE(count, maxima, 8) HALVE(count, maxima, 4)                \
      HALVE(count, maxima, 2) HALVE(count, maxima, 1)                                         \
      for (int k = 0; k < count; k++)                                                         \
        sums[((plane - origin) * rows + row) * count + k] assign partial[k][0];               \
    }                                                                                         \
  RESTORE_DENORMALS
#define FOR_ROWS(function, count, maxima, assign)                                             \
  SUM_ROWS(count, maxima, assign, 0, nx,                                                      \
           function(plane, row, row_m, row_p, x, STEPS(x), total, PASSED),                    \
           function(plane, row, row_m, row_p, x, X_NEIGHBOURS(x), total, PASSED))
#define FOR_NODE_ROWS(function, count, maxima, assign)                                        \
  SUM_ROWS(count, maxima, assign, ROW_START(plane, row), ROW_START(plane, row + 1),           \
           function(plane, x, total, PASSED), function(plane, x, total, PASSED))

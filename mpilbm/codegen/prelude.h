/* One text for C11, CUDA and OpenCL C. A kernel is a cell function (or row, or entry function) and a driver
   from this prelude that calls it for all cells of the planes begin, begin + stride, ... < end. */
#ifdef __OPENCL_VERSION__ /* where uint8 and uint16 are vectors of 8 and 16 numbers */
typedef long int64;
typedef ulong uint64;
#define uint8 uchar
#define uint16 ushort
#else
typedef long long int64;
typedef unsigned long long uint64;
typedef unsigned char uint8;
typedef unsigned short uint16;
#endif
typedef int int32;
typedef unsigned int uint32;
/* A text for GPUs: a thread computes a cell, or a pair of cells. HIP compiles CUDA's for AMD GPUs. */
#if defined(__CUDACC__) || defined(__HIP__)
#define CUDA_TEXT
#endif
#if defined(CUDA_TEXT) || defined(__OPENCL_VERSION__)
#define ON_GPU
#endif

#define R(value) ((real)(value))
#define LOAD(field, index) widen((field)[index])
#define LOAD_OWN(field, index) widen_own((field)[index])
#define LOAD_REAL(field, index) ((field)[index])
#define STORE(field, index, value) STORE_BITS(field, index, narrow(value))
#define STORE_OWN(field, index, value) STORE_BITS(field, index, narrow_own(value))
#define STORE_LINE(field, index, k, value) STORE_LINE_BITS(field, index, k, narrow(value))
#define STORE_LINE_OWN(field, index, k, value) STORE_LINE_BITS(field, index, k, narrow_own(value))
#define LOAD_LINE(field, index, k) widen(LINE_BITS(field, index, k))
#define LOAD_LINE_OWN(field, index, k) widen_own(LINE_BITS(field, index, k))
#define STORE_HERE(field, index, value) ((field)[index] = narrow(value))
#define AS_STORED(value) widen(narrow(value))
#define AS_STORED_OWN(value) widen_own(narrow_own(value))
#define COPY(field, index, bits) ((field)[index] = (bits))
/* A value in the widest format takes several slots, see layouts/formats.py; a state has all values
   in this format, with the same bits or exactly converted. */
#define AT_WIDE(field, index) (*(GLOBAL wide*)((field) + (index)))
#define GET_WIDE(field, index) (*(GLOBAL const wide*)((field) + (index)))
#define LOAD_WIDE(field, index) (R(GET_WIDE(field, index)) * (R(1) / R(SCALE)))
#define STORE_WIDE(field, index, value) STORE_BITS((GLOBAL wide*)((field) + (index)), 0, (wide)((value) * R(SCALE)))
#define STORE_LINE_WIDE(field, index, k, value) STORE_LINE_BITS_WIDE(field, index, k, (wide)((value) * R(SCALE)))
#define BITS(field, index) widened((field)[index])
#define BITS_WIDE(field, index) GET_WIDE(field, index)
#define PUT_BITS(field, index, bits) ((field)[index] = narrowed(bits))
#define PUT_BITS_WIDE(field, index, bits) (AT_WIDE(field, index) = (bits))
/* In 16 bits: a value with further bits, its tail, in the last bits of a carrier; see layouts/formats.py. */
#define LOAD_HEAD(field, index, carrier, bits) \
  (whole((field)[index], (field)[carrier], bits) * (R(1) / R(SCALE)))
#define LOAD_CARRIER(field, index, bits) widen(without_tail((field)[index], bits))
#define STORE_HEAD(field, index, value, bits) STORE_BITS(field, index, head_bits((value) * R(SCALE), bits))
#define STORE_CARRIER(field, index, value, head, bits) \
  STORE_BITS(field, index, carrier_bits((value) * R(SCALE), (head) * R(SCALE), bits))
#define STORE_LINE_HEAD(field, index, k, value, bits) \
  STORE_LINE_BITS(field, index, k, head_bits((value) * R(SCALE), bits))
#define STORE_LINE_CARRIER(field, index, k, value, head, bits) \
  STORE_LINE_BITS(field, index, k, carrier_bits((value) * R(SCALE), (head) * R(SCALE), bits))
#define BITS_HEAD(field, index) BITS(field, index)
#define BITS_CARRIER(field, index) BITS(field, index)
#define PUT_BITS_HEAD(field, index, bits) PUT_BITS(field, index, bits)
#define PUT_BITS_CARRIER(field, index, bits) PUT_BITS(field, index, bits)
#define STORE_REAL(field, index, value) ((field)[index] = (real)(value))
#ifdef FUSED
#define MAD(a, b, c) fma(a, b, c)
#define NMAD(a, b, c) fma(-(a), b, c)
#else
#define MAD(a, b, c) ((c) + (a) * (b))
#define NMAD(a, b, c) ((c) - (a) * (b))
#endif
#define BEFORE(i, n) ((i) > 0 ? (i) - 1 : (n) - 1)
#define AFTER(i, n) ((i) + 1 < (n) ? (i) + 1 : 0)
/* The number of a plane of the box, from one that may lie up to n planes beyond a periodic face. */
#define INSIDE(i, n) ((i) + ((i) < 0 ? (n) : (i) >= (n) ? -(n) : 0))
/* What to add to the number p of a plane beyond the first or the last one of a slab that has all planes of
   a periodic axis (see layouts/grid.py); elsewhere `turn` is 0. */
#define TURN_FIRST(field, p) ((p) < field##_first ? field##_turn : 0)
#define TURN_LAST(field, p) ((p) > field##_last ? -field##_turn : 0)
#define TURN(field, p) (TURN_FIRST(field, p) + TURN_LAST(field, p))
#define NEIGHBOURS(i, n) BEFORE(i, n), AFTER(i, n)

/* Sums over the cells of a row: so many partial sums, added in a tree. Sums over columns: the rows of
   a plane in parts. All texts add in the same order. */
#define ROW_LANES 32
#define COLUMN_PARTS 8
#define PART_BEGIN(part) ((int)((int64)rows * (part) / COLUMN_PARTS))

/* The neighbours of cell x in its row; STEPS does not wrap around. In staggered rows they depend on
   the parity of the row (see layouts/grid.py), which is the same for all cells of a row. */
#ifdef STAGGERED
#define ODD ((int)((plane + row + odd) & 1))
#define X_BEFORE(x) (ODD ? (x) : BEFORE(x, nx))
#define X_AFTER(x) (ODD ? AFTER(x, nx) : (x))
#define STEPS(x) (x) - 1 + ODD, (x) + ODD
#else
#define X_BEFORE(x) BEFORE(x, nx)
#define X_AFTER(x) AFTER(x, nx)
#define STEPS(x) (x) - 1, (x) + 1
#endif
#define X_NEIGHBOURS(x) X_BEFORE(x), X_AFTER(x)
#if defined(INTRINSICS) && defined(ON_GPU)
#define DIVIDE(a, b) quick_ratio(a, b)
#define QUOTIENT(a, b) quick_ratio(a, b)
#define LOG2_1P(x) quick_log2(R(1) + (x))
#else
#define DIVIDE(a, b) ((a) / (b))
#define QUOTIENT(a, b) ((a) * reciprocal_of(b))
#define LOG2_1P(x) log2_of_one_and(x)
#endif


/* Entries of boundary lists are added in chunks: entry number k of a chunk is added to total number
   k % CHUNK_THREADS, and these totals are then added in a tree, in the same order on all devices. */
#define CHUNK_THREADS 128

/* The words of CUDA for a C++20 compiler on a CPU: goes before a generated text, LAUNCH(kernel) of
   each kernel behind it; cuda_emulation.cpp is compiled once and linked to each of them. One launch
   at a time, one block after another, the last one first.

   Threads of a block run one after another, the last one first (kernels in which no thread waits for
   another), or each until it waits for the others, on a stack of its own. Shared memory is full of NaN
   when a block begins.

   Inline PTX has no meaning here. The texts keep all of it between #ifndef EMULATED and its #endif,
   in functions and macros which this header defines in C++ under the same names. Headers of the
   standard library are few here, because parsing them takes longer than the texts. */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* as in prelude_c.h */
#include <cstddef>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS /* else GCC's cmath reads Bessel functions and their like: 0.15 s */
#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>

#define __CUDACC__
#define EMULATED
#define __global__
#define __grid_constant__
#define __device__
#define __forceinline__ inline __attribute__((unused))
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("emulated_shared")))

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace emulation {

struct Shape {
  dim3 grid, block;
  unsigned dynamic_bytes;
  unsigned together; /* whether its threads wait for one another */
};

using Call = void (*)(void** arguments);

extern dim3 grid_size, block_size, block_index, thread_index;
extern void* dynamic; /* shared memory whose size the launch gives */

bool launch(const Shape& shape, Call call, void** arguments);

/* The arguments are pointers to the values, as cuLaunchKernel takes them. */
template <std::size_t...> struct Indices {};
template <std::size_t N, std::size_t... I> struct Count : Count<N - 1, N - 1, I...> {};
template <std::size_t... I> struct Count<0, I...> {
  using All = Indices<I...>;
};

template <class... T, std::size_t... I>
void apply(void (*kernel)(T...), void** arguments, Indices<I...>)
{
  kernel(*static_cast<T*>(arguments[I])...);
}

template <class... T> void apply(void (*kernel)(T...), void** arguments)
{
  apply(kernel, arguments, typename Count<sizeof...(T)>::All());
}

}  // namespace emulation

#define LAUNCH(kernel)                                                                       \
  extern "C" bool launch_##kernel(const emulation::Shape* shape, void** arguments)           \
  {                                                                                          \
    const auto call = [](void** arguments) { emulation::apply(kernel, arguments); };         \
    return emulation::launch(*shape, call, arguments);                                       \
  }

#define gridDim emulation::grid_size
#define blockDim emulation::block_size
#define blockIdx emulation::block_index
#define threadIdx emulation::thread_index

void __syncthreads();
inline void __syncwarp() { __syncthreads(); } /* all threads of a block meet, which is stronger */

template <class T> struct alignas(2 * sizeof(T)) Vector2 {
  T x, y;
};
using ushort2 = Vector2<unsigned short>;
using int2 = Vector2<int>;
using float2 = Vector2<float>;
using double2 = Vector2<double>;
using ulonglong2 = Vector2<unsigned long long>;
inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <class T> T atomicAdd(T* address, T value)
{
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <class T> void __stcs(T* address, T value) { *address = value; }
template <class T> T __ldg(const T* address) { return *address; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

/* In CUDA: extern __shared__ type name[]; */
#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(emulation::dynamic)

/* In PTX: */
#define FORGET_ADDRESSES

#if defined(__clang__) && __clang_major__ < 15 /* which have no _Float16 on x86 */
using half = __fp16;
#else
using half = _Float16;
#endif
inline float half_to_float(unsigned short bits)
{
  half value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned short float_to_half(float number)
{
  const half value = number;
  unsigned short bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline unsigned floats_to_halves(float low, float high)
{
  return float_to_half(low) | static_cast<unsigned>(float_to_half(high)) << 16;
}

inline float without_last_bits(float number)
{
  unsigned bits;
  std::memcpy(&bits, &number, sizeof bits);
  bits &= ~0x1fffu;
  std::memcpy(&number, &bits, sizeof bits);
  return number;
}

inline unsigned floats_to_cut_halves(float low, float high)
{
  return floats_to_halves(without_last_bits(low), without_last_bits(high));
}

inline unsigned low_halves(unsigned low, unsigned high) { return (low & 0xffffu) | high << 16; }

inline float quick_ratio(float a, float b) { return a / b; }
inline float quick_log2(float x) { return std::log2(x); }

template <class T> T reciprocal(T value) { return 1 / value; }
template <class T> T quotient(T a, T b) { return a / b; }
template <class T> T root(T value) { return std::sqrt(value); }

/* Words that another device reads and writes. */
using Word = unsigned long long;
inline void set_flag(Word* flag, Word value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
Word get_flag(const Word* flag);
Word nanoseconds();
[[noreturn]] void give_up();

/* A barrier that counts one arrival and bytes, a word: bytes due, whether it was arrived at, and the
   parity of the phase that runs. */
using Barrier = unsigned long long;

void barrier_init(Barrier* barrier);
void barrier_expect(Barrier* barrier, unsigned bytes);
void barrier_wait(Barrier* barrier, unsigned phase);

/* A tensor map of rank four: x, row, value, plane; sizes and box in values, strides in bytes. */
struct TensorMap {
  const char* data;
  std::uint64_t sizes[4], strides[3];
  std::uint32_t box[4], value_bytes;
};

/* The box is copied at once; cells outside the tensor become zero. */
void copy_box(void* to, const void* of, Barrier* barrier, int x, int row, int plane);

inline void keep_branch() {}

/* Every other thread copies at once, the others as late as they may. */
void copy_bytes(void* to, const void* from, std::size_t bytes);
template <std::size_t bytes> void copy_async(void* to, const void* from) { copy_bytes(to, from, bytes); }
void copy_commit();
void copy_wait_for_all_but(std::size_t later);
template <std::size_t later> void copy_wait() { copy_wait_for_all_but(later); }

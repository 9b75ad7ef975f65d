/* The words of CUDA for a C++20 compiler on a CPU: goes before a generated text, LAUNCH(kernel) of
   each kernel behind it. One launch at a time, one block after another, the last one first.

   Threads of a block either run one after another, the last one first (kernels in which no thread
   waits for another), or are std::threads that meet at a std::barrier in __syncthreads(). Shared
   memory is full of NaN when a block begins.

   Inline PTX has no meaning here. The texts keep all of it between #ifndef EMULATED and its #endif,
   in functions and macros which this header defines in C++ under the same names. */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* as in prelude_c.h */
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <math.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#define __CUDACC__
#define EMULATED
#define __global__
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

struct alignas(128) Line {
  char bytes[128];
};

static std::mutex one_launch;
static dim3 grid_size, block_size;
static thread_local dim3 block_index, thread_index;
static std::optional<std::barrier<>> meeting; /* of the threads of a block that run together */
static std::vector<Line> dynamic;             /* shared memory whose size the launch tells */
static std::atomic<bool> failed;
extern "C" __attribute__((weak, visibility("hidden"))) char __start_emulated_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) char __stop_emulated_shared[];

inline unsigned count(dim3 size) { return size.x * size.y * size.z; }

inline dim3 place(unsigned index, dim3 size)
{
  return {index % size.x, index / size.x % size.y, index / size.x / size.y};
}

inline void fill_shared_with_nan()
{
  if (__start_emulated_shared)
    std::memset(__start_emulated_shared, 0xff, __stop_emulated_shared - __start_emulated_shared);
  for (Line& line : dynamic) std::memset(&line, 0xff, sizeof line);
}

using Call = void (*)(void** arguments);

struct Copy {
  void* to;
  const void* from;
};

/* Of 16 bytes, that a thread has begun and not waited for; `groups` are committed. */
static thread_local std::vector<Copy> copies;
static thread_local std::deque<std::vector<Copy>> groups;

/* Run a thread; what it throws fails the launch. */
static void run(Call call, void** arguments)
{
  copies.clear();
  groups.clear();
  try {
    call(arguments);
  } catch (const std::exception& error) {
    if (!failed.exchange(true)) std::fprintf(stderr, "%s\n", error.what());
  }
}

static void run_one_by_one(Call call, void** arguments)
{
  for (unsigned block = count(grid_size); block-- > 0;)
    for (unsigned thread = count(block_size); thread-- > 0;) {
      block_index = place(block, grid_size);
      thread_index = place(thread, block_size);
      run(call, arguments);
    }
}

/* A thread that leaves the kernel is no longer waited for. */
static void run_together(Call call, void** arguments)
{
  const unsigned threads = count(block_size);
  std::barrier next_block(threads, [=]() noexcept {
    fill_shared_with_nan();
    meeting.emplace(threads);
  });
  const auto work = [&](unsigned thread) {
    thread_index = place(thread, block_size);
    for (unsigned block = count(grid_size); block-- > 0;) {
      next_block.arrive_and_wait();
      block_index = place(block, grid_size);
      run(call, arguments);
      meeting->arrive_and_drop();
    }
  };
  std::vector<std::thread> pool;
  for (unsigned thread = 0; thread < threads; thread++) pool.emplace_back(work, thread);
  for (auto& thread : pool) thread.join();
  meeting.reset();
}

static bool launch(const Shape& shape, Call call, void** arguments)
{
  const std::lock_guard guard(one_launch);
  grid_size = shape.grid;
  block_size = shape.block;
  dynamic.resize((shape.dynamic_bytes + sizeof(Line) - 1) / sizeof(Line));
  failed = false;
  shape.together ? run_together(call, arguments) : run_one_by_one(call, arguments);
  return !failed;
}

/* The arguments are pointers to the values, as cuLaunchKernel takes them. */
template <class... T, std::size_t... I>
void apply(void (*kernel)(T...), void** arguments, std::index_sequence<I...>)
{
  kernel(*static_cast<T*>(arguments[I])...);
}

template <class... T> void apply(void (*kernel)(T...), void** arguments)
{
  apply(kernel, arguments, std::index_sequence_for<T...>());
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

inline void __syncthreads()
{
  if (!emulation::meeting) throw std::logic_error("__syncthreads(), but threads run one by one");
  emulation::meeting->arrive_and_wait();
}

template <class T> struct alignas(2 * sizeof(T)) Vector2 {
  T x, y;
};
using ushort2 = Vector2<unsigned short>;
using float2 = Vector2<float>;
using double2 = Vector2<double>;
using ulonglong2 = Vector2<unsigned long long>;
inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
template <class T> T atomicAdd(T* address, T value)
{
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <class T> void __stcs(T* address, T value) { *address = value; }
template <class T> T __ldg(const T* address) { return *address; }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

/* In CUDA: extern __shared__ type name[]; */
#define DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(emulation::dynamic.data())

/* In PTX: */
#define FORGET_ADDRESSES

#if defined(__clang__) && __clang_major__ < 15 /* which have no _Float16 on x86 */
#define _Float16 __fp16
#endif
inline float half_to_float(unsigned short bits)
{
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned short float_to_half(float number)
{
  const _Float16 value = number;
  unsigned short bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float quick_ratio(float a, float b) { return a / b; }
inline float quick_log2(float x) { return std::log2(x); }

template <class T> T reciprocal(T value) { return 1 / value; }

/* Words that another device reads and writes. */
using Word = unsigned long long;
inline void tell(Word* flag, Word value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
inline Word told(const Word* flag)
{
  std::this_thread::yield();
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
inline Word nanoseconds() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
inline void give_up() { throw std::logic_error("trap"); }

/* A barrier that counts one arrival and bytes, a word: bytes due, whether it was arrived at, and the
   parity of the phase that runs. */
using Barrier = unsigned long long;

inline void barrier_init(Barrier* barrier) { __atomic_store_n(barrier, 0, __ATOMIC_SEQ_CST); }

inline void barrier_update(Barrier* barrier, std::int32_t bytes, bool arrive)
{
  constexpr Barrier arrived = 1ull << 32, parity = 1ull << 33;
  Barrier old = __atomic_load_n(barrier, __ATOMIC_SEQ_CST), next;
  do {
    const auto due = static_cast<std::uint32_t>(static_cast<std::int32_t>(old) + bytes);
    next = (old & ~0xffffffffull) | due | (arrive ? arrived : 0);
    if ((next & arrived) && due == 0) next = (next & ~arrived) ^ parity;
  } while (!__atomic_compare_exchange_n(barrier, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

inline void barrier_expect(Barrier* barrier, unsigned bytes) { barrier_update(barrier, bytes, true); }

inline void barrier_wait(Barrier* barrier, unsigned phase)
{
  using clock = std::chrono::steady_clock;
  const auto patience = clock::now() + std::chrono::seconds(20);
  while ((__atomic_load_n(barrier, __ATOMIC_SEQ_CST) >> 33 & 1) == phase) {
    if (emulation::failed) throw std::logic_error("another thread failed");
    if (clock::now() > patience) throw std::logic_error("barrier_wait(), but its phase does not end");
    std::this_thread::yield();
  }
}

/* A tensor map of rank three; sizes and box in values, strides of rows and slots in bytes. */
struct TensorMap {
  const char* data;
  std::uint64_t sizes[3], strides[2];
  std::uint32_t box[3], value_bytes;
};

/* The box is copied at once; cells outside the tensor become zero. */
inline void copy_box(void* to, const void* of, Barrier* barrier, int x, int row, int slot)
{
  const TensorMap& map = *static_cast<const TensorMap*>(of);
  if (reinterpret_cast<std::uintptr_t>(to) % 128 || x * static_cast<int>(map.value_bytes) % 16)
    throw std::logic_error("copy_box(): the target must lie at 128 bytes, the first value at 16");
  char* target = static_cast<char*>(to);
  const auto [width, rows, slots] = map.box;
  for (unsigned k = 0; k < width * rows * slots; k++, target += map.value_bytes) {
    const std::int64_t at[] = {x + k % width, row + k / width % rows, slot + k / width / rows};
    bool inside = true;
    for (int axis = 0; axis < 3; axis++)
      inside = inside && at[axis] >= 0 && static_cast<std::uint64_t>(at[axis]) < map.sizes[axis];
    const auto start = at[2] * map.strides[1] + at[1] * map.strides[0] + at[0] * map.value_bytes;
    inside ? std::memcpy(target, map.data + start, map.value_bytes) : std::memset(target, 0, map.value_bytes);
  }
  barrier_update(barrier, -static_cast<std::int32_t>(target - static_cast<char*>(to)), false);
}

/* Every other thread copies at once, the others as late as they may. */
inline void copy_async16(void* to, const void* from)
{
  if (reinterpret_cast<std::uintptr_t>(to) % 16 || reinterpret_cast<std::uintptr_t>(from) % 16)
    throw std::logic_error("copy_async16(): 16 must divide both addresses");
  if (threadIdx.x % 2)
    std::memcpy(to, from, 16);
  else
    emulation::copies.push_back({to, from});
}

inline void copy_commit() { emulation::groups.push_back(std::exchange(emulation::copies, {})); }

template <std::size_t later> void copy_wait()
{
  for (auto& groups = emulation::groups; groups.size() > later; groups.pop_front())
    for (const auto& copy : groups.front()) std::memcpy(copy.to, copy.from, 16);
}

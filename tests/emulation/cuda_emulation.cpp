/* What cuda_emulation.h declares: threads, blocks, launches, barriers, copies. */
#include "cuda_emulation.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace emulation {

struct alignas(128) Line {
  char bytes[128];
};

dim3 grid_size, block_size;
thread_local constinit dim3 block_index, thread_index;
void* dynamic;
static std::mutex one_launch;
static std::optional<std::barrier<>> meeting; /* of the threads of a block that run together */
static std::vector<Line> dynamic_lines;
static std::atomic<bool> failed;
extern "C" __attribute__((weak, visibility("hidden"))) char __start_emulated_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) char __stop_emulated_shared[];

static unsigned count(dim3 size) { return size.x * size.y * size.z; }

static dim3 place(unsigned index, dim3 size)
{
  return {index % size.x, index / size.x % size.y, index / size.x / size.y};
}

static void fill_shared_with_nan()
{
  if (__start_emulated_shared)
    std::memset(__start_emulated_shared, 0xff, __stop_emulated_shared - __start_emulated_shared);
  for (Line& line : dynamic_lines) std::memset(&line, 0xff, sizeof line);
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
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

bool launch(const Shape& shape, Call call, void** arguments)
{
  const std::lock_guard guard(one_launch);
  grid_size = shape.grid;
  block_size = shape.block;
  dynamic_lines.resize((shape.dynamic_bytes + sizeof(Line) - 1) / sizeof(Line));
  dynamic = dynamic_lines.data();
  failed = false;
  shape.together ? run_together(call, arguments) : run_one_by_one(call, arguments);
  return !failed;
}

}  // namespace emulation

void __syncthreads()
{
  if (!emulation::meeting) throw std::logic_error("__syncthreads(), but threads run one by one");
  emulation::meeting->arrive_and_wait();
}

Word get_flag(const Word* flag)
{
  std::this_thread::yield();
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

Word nanoseconds()
{
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void give_up() { throw std::logic_error("trap"); }

void barrier_init(Barrier* barrier) { __atomic_store_n(barrier, 0, __ATOMIC_SEQ_CST); }

static void barrier_update(Barrier* barrier, std::int32_t bytes, bool arrive)
{
  constexpr Barrier arrived = 1ull << 32, parity = 1ull << 33;
  Barrier old = __atomic_load_n(barrier, __ATOMIC_SEQ_CST), next;
  do {
    const auto due = static_cast<std::uint32_t>(static_cast<std::int32_t>(old) + bytes);
    next = (old & ~0xffffffffull) | due | (arrive ? arrived : 0);
    if ((next & arrived) && due == 0) next = (next & ~arrived) ^ parity;
  } while (!__atomic_compare_exchange_n(barrier, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

void barrier_expect(Barrier* barrier, unsigned bytes) { barrier_update(barrier, bytes, true); }

void barrier_wait(Barrier* barrier, unsigned phase)
{
  using clock = std::chrono::steady_clock;
  const auto patience = clock::now() + std::chrono::seconds(20);
  while ((__atomic_load_n(barrier, __ATOMIC_SEQ_CST) >> 33 & 1) == phase) {
    if (emulation::failed) throw std::logic_error("another thread failed");
    if (clock::now() > patience) throw std::logic_error("barrier_wait(), but its phase does not end");
    std::this_thread::yield();
  }
}

void copy_box(void* to, const void* of, Barrier* barrier, int x, int row, int plane)
{
  const TensorMap& map = *static_cast<const TensorMap*>(of);
  if (reinterpret_cast<std::uintptr_t>(to) % 128 || x * static_cast<int>(map.value_bytes) % 16)
    throw std::logic_error("copy_box(): the target must lie at 128 bytes, the first value at 16");
  char* target = static_cast<char*>(to);
  const auto [width, rows, values, planes] = map.box;
  for (unsigned k = 0; k < width * rows * values * planes; k++, target += map.value_bytes) {
    const std::int64_t at[] = {x + k % width, row + k / width % rows, k / width / rows % values,
                               plane + k / width / rows / values};
    bool inside = true;
    std::int64_t start = at[0] * map.value_bytes;
    for (int axis = 0; axis < 4; axis++) {
      inside = inside && at[axis] >= 0 && static_cast<std::uint64_t>(at[axis]) < map.sizes[axis];
      if (axis) start += at[axis] * static_cast<std::int64_t>(map.strides[axis - 1]);
    }
    inside ? std::memcpy(target, map.data + start, map.value_bytes) : std::memset(target, 0, map.value_bytes);
  }
  barrier_update(barrier, -static_cast<std::int32_t>(target - static_cast<char*>(to)), false);
}

void copy_bytes(void* to, const void* from, std::size_t bytes)
{
  const auto divides = [bytes](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % bytes == 0; };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || !divides(to) || !divides(from))
    throw std::logic_error("copy_async(): 4, 8 or 16 bytes, which must divide both addresses");
  if (threadIdx.x % 2)
    std::memcpy(to, from, bytes);
  else
    emulation::copies.push_back({to, from, bytes});
}

void copy_commit() { emulation::groups.push_back(std::exchange(emulation::copies, {})); }

void copy_wait_for_all_but(std::size_t later)
{
  for (auto& groups = emulation::groups; groups.size() > later; groups.pop_front())
    for (const auto& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
}

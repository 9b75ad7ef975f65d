/* What cuda_emulation.h declares: threads, blocks, launches, barriers, copies. */
#undef _FORTIFY_SOURCE /* with which a jump to another stack is an error */
#include "cuda_emulation.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <setjmp.h>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <ucontext.h>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

struct alignas(128) Line {
  char bytes[128];
};

dim3 grid_size, block_size, block_index, thread_index;
void* dynamic;
static std::mutex one_launch;
static std::vector<Line> dynamic_lines;
static bool failed;
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

/* A stack of its own, so that a thread of a block can wait for the others and go on later. */
constexpr std::size_t STACK = 1 << 20, GUARD = 1 << 16;

struct Thread {
  ucontext_t context; /* where it begins */
  jmp_buf waits; /* where it goes on */
  dim3 index;
  char* stack;
  bool begun;
  enum { runs, meets, left } state;
  std::vector<Copy> copies; /* of 4 to 16 bytes, begun and not waited for */
  std::deque<std::vector<Copy>> groups; /* those that are committed */
};

static Thread alone; /* stands for each thread of those that run one by one */
static Thread* running = &alone;
static Call called;
static void** values;

/* Run a thread; what it throws fails the launch. */
static void run(Call call, void** arguments)
{
  running->copies.clear();
  running->groups.clear();
  try {
    call(arguments);
  } catch (const std::exception& error) {
    if (!std::exchange(failed, true)) std::fprintf(stderr, "%s\n", error.what());
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

/* swapcontext() asks the system for the mask of signals each time, which takes longer than what most threads
   do between two barriers; _setjmp() does not. The address sanitizer has to know on which stack a program
   runs, and follows no jumps. */
#ifdef __SANITIZE_ADDRESS__
static ucontext_t scheduler;
static const void* scheduler_stack;
static std::size_t scheduler_bytes;

static void to_thread(Thread& thread)
{
  void* own;
  __sanitizer_start_switch_fiber(&own, thread.stack, STACK);
  swapcontext(&scheduler, &thread.context);
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
}

static void on_thread(void* own) { __sanitizer_finish_switch_fiber(own, &scheduler_stack, &scheduler_bytes); }

static void to_scheduler()
{
  void* own;
  __sanitizer_start_switch_fiber(&own, scheduler_stack, scheduler_bytes);
  swapcontext(&running->context, &scheduler);
  on_thread(own);
}
#else
static jmp_buf scheduler;

static void to_thread(Thread& thread)
{
  if (_setjmp(scheduler)) return;
  if (std::exchange(thread.begun, true)) _longjmp(thread.waits, 1);
  setcontext(&thread.context);
}

static void on_thread(void*) {}

static void to_scheduler()
{
  if (!_setjmp(running->waits)) _longjmp(scheduler, 1);
}
#endif

/* The same thread of each block in turn. */
static void begin()
{
  on_thread(nullptr);
  for (;;) {
    run(called, values);
    running->state = Thread::left;
    to_scheduler();
  }
}

/* All threads of a block until each has left the kernel or meets the others. A thread that has left is no
   longer waited for. The order of the threads is reversed each time: where a barrier is missing, a thread
   reads what another has not written, or has overwritten. */
static void run_block(std::vector<Thread>& threads, bool backwards)
{
  for (Thread& thread : threads) thread.state = Thread::runs;
  for (bool some = true; some; backwards = !backwards) {
    bool waits = false;
    some = false;
    for (std::size_t k = 0; k < threads.size(); k++) {
      Thread& thread = threads[backwards ? threads.size() - 1 - k : k];
      if (thread.state != Thread::runs) continue;
      running = &thread;
      thread_index = thread.index;
      to_thread(thread);
      waits |= thread.state == Thread::runs;
    }
    for (Thread& thread : threads) {
      if (!waits && thread.state == Thread::meets) thread.state = Thread::runs;
      some |= thread.state != Thread::left;
    }
  }
}

static void run_together(Call call, void** arguments)
{
  const unsigned size = count(block_size);
  void* stacks = mmap(nullptr, size * (STACK + GUARD), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) throw std::bad_alloc();
  std::vector<Thread> threads(size);
  for (unsigned k = 0; k < size; k++) {
    char* lowest = static_cast<char*>(stacks) + k * (STACK + GUARD);
    mprotect(lowest, GUARD, PROT_NONE);
    threads[k].stack = lowest + GUARD;
    threads[k].index = place(k, block_size);
    threads[k].begun = false;
    getcontext(&threads[k].context);
    threads[k].context.uc_stack.ss_sp = threads[k].stack;
    threads[k].context.uc_stack.ss_size = STACK;
    threads[k].context.uc_link = nullptr;
    makecontext(&threads[k].context, begin, 0);
  }
  called = call;
  values = arguments;
  for (unsigned block = count(grid_size); block-- > 0;) {
    fill_shared_with_nan();
    block_index = place(block, grid_size);
    run_block(threads, block % 2);
  }
  running = &alone;
  munmap(stacks, size * (STACK + GUARD));
}

/* Let the other threads of the block, and other launches, go on. */
static void pause()
{
  if (running != &alone) to_scheduler();
  std::this_thread::yield();
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
  using namespace emulation;
  if (running == &alone) throw std::logic_error("__syncthreads(), but threads run one by one");
  running->state = Thread::meets;
  to_scheduler();
}

Word get_flag(const Word* flag)
{
  emulation::pause();
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
    emulation::pause();
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
    emulation::running->copies.push_back({to, from, bytes});
}

void copy_commit()
{
  emulation::Thread& thread = *emulation::running;
  thread.groups.push_back(std::exchange(thread.copies, {}));
}

void copy_wait_for_all_but(std::size_t later)
{
  for (auto& groups = emulation::running->groups; groups.size() > later; groups.pop_front())
    for (const auto& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
}

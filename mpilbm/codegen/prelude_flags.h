/* Flags in the memory of the GPU that awaits them, set by another GPU. A flag is a number that grows.
   Flags are stored with release and loaded with acquire semantics at the scope of the system.
   [PTX ISA, Memory Consistency Model] */
typedef unsigned long long word;

/* All inline PTX; tests/emulation/cuda_emulation.h has the same functions in C++. */
#ifndef EMULATED
INLINE void set_flag(word* flag, word value)
{
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}
INLINE word get_flag(const word* flag)
{
  word value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}
INLINE word nanoseconds()
{
  word now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
INLINE void give_up() { asm volatile("trap;"); }
#endif

/* Waits for a flag; false if the host has set failure[1] in its memory, which is read rarely. */
INLINE bool await(const word* flag, word turn, word* failure, word what, word patience)
{
  const word begin = nanoseconds();
  word checked = begin;
  while (get_flag(flag) < turn) {
    const word now = nanoseconds();
    if (now - checked > 1000000) {
      if (get_flag(failure + 1)) return false;
      checked = now;
    }
    if (now - begin > patience) {
      set_flag(failure, what);
      __threadfence_system();
      give_up();
    }
  }
  return true;
}

/* A face of a slab whose edge plane the kernel of a step sends itself. Values `start` + k * f_slot + …
   of the array that the step writes, k < slots, lie at the same index of `to` in the neighbour's memory,
   of which `to` is the array, moved. `failed`: what is reported if the neighbour does not come. */
struct Face {
  char* to;
  word start, slots;
  word *peer_arrived, *arrived; /* the flags set there and here */
  word *steps, *blocks;         /* on this device: steps done; blocks done in the present step */
  word failed;
};

struct Faces {
  word patience;
  word* failure;
  Face face[2]; /* of the first and of the last plane */
};

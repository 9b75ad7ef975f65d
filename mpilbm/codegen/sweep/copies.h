/* The PTX of the moment sweep: asynchronous copies, barriers that wait for them, 1 / x, roots, and halves.
   tests/emulation/cuda_emulation.h replaces it by C++ where there is no GPU. */

/* A CUtensorMap. It is a parameter of the kernel: a copy in global memory, written by ordinary copies,
   would need a fence in every block. [CUDA C++ Programming Guide, Tensor Memory Access] */
struct __align__(64) BoxMap {
  unsigned char bytes[128];
};
#ifndef EMULATED
INLINE float reciprocal(float value)
{
  float first;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(first) : "f"(value));
  return fma(first, fma(-value, first, 1.0f), first);
}
INLINE double reciprocal(double value) { return 1.0 / value; }
/* a / b and a root without the branches of the compiler's own code, whose functions for extreme numbers cost registers.
   b and a / b are normal numbers, b below 2^126, or a is +0; no root is of a negative number. Infinity gives NaN.
   On an H100 all roots of finite numbers had equal bits, and 4.3e9 quotients of a from 2^-60 and b from 2^-20 to 2^20. */
INLINE float quotient(float a, float b)
{
#ifdef INTRINSICS
  return quick_ratio(a, b);
#else
  const float inverse = reciprocal(b), first = a * inverse;
  return fma(inverse, fma(-b, first, a), first);
#endif
}
INLINE float root(float value)
{
  const bool tiny = value < 0x1p-96f;
  const float larger = value * (tiny ? 0x1p64f : 1.0f);
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(larger == 0.0f ? 1.0f : larger));
  const float first = larger * inverse;
  return fma(fma(-first, first, larger), 0.5f * inverse, first) * (tiny ? 0x1p-32f : 1.0f);
}
INLINE double quotient(double a, double b) { return a / b; }
INLINE double root(double value) { return sqrt(value); }
INLINE unsigned shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }
INLINE void barrier_init(unsigned long long* barrier)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
  asm volatile("fence.proxy.async.shared::cta;");
}
INLINE void barrier_expect(unsigned long long* barrier, unsigned bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
INLINE void barrier_wait(unsigned long long* barrier, unsigned phase)
{
  unsigned done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared_address(barrier)), "r"(phase) : "memory");
  } while (!done);
}
/* Copy all values of a tensor map from x on in a row of a plane; cells beyond its faces become zero. */
INLINE void copy_box(void* to, const void* map, unsigned long long* barrier, int x, int row, int plane)
{
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %6, %5}], [%2];"
               ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(row), "r"(plane), "r"(0)
               : "memory");
}
#ifdef STORE_HALF
INLINE unsigned floats_to_halves(float low, float high)
{
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
INLINE unsigned floats_to_cut_halves(float low, float high)
{
  unsigned bits;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
INLINE unsigned low_halves(unsigned low, unsigned high)
{
  unsigned bits;
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(bits) : "r"(low), "r"(high));
  return bits;
}
#endif
/* A condition around it remains a branch: few warps meet it. */
INLINE void keep_branch() { asm volatile(""); }
/* Copies 4, 8 or 16 bytes. A wait returns when all but the last `later` commits have arrived. */
template <int bytes> INLINE void copy_async(void* to, const void* from)
{
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(bytes) : "memory");
}
INLINE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int later> INLINE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory"); }
#endif

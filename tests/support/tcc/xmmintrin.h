/* The three functions of <xmmintrin.h> that kernel texts use, for the Tiny C Compiler, whose
   assembler lacks their instructions. */
static inline unsigned _mm_getcsr(void)
{
  unsigned value;
  __asm__ volatile(".byte 0x0f, 0xae, 0x18" : : "a"(&value) : "memory"); /* stmxcsr (%rax) */
  return value;
}

static inline void _mm_setcsr(unsigned value)
{
  __asm__ volatile(".byte 0x0f, 0xae, 0x10" : : "a"(&value) : "memory"); /* ldmxcsr (%rax) */
}

static inline void _mm_sfence(void) { __asm__ volatile(".byte 0x0f, 0xae, 0xf8" : : : "memory"); }

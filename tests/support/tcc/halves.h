/* Numbers of 16 bits for the Tiny C Compiler, which has no _Float16: both conversions by integers. */
static inline float float_of_half(unsigned short half)
{
  unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, digits = half & 0x3ffu;
  union { unsigned bits; float value; } found = {sign};
  if (exponent == 31)
    found.bits |= 0x7f800000 | digits << 13 | (digits ? 0x400000 : 0);
  else if (exponent)
    found.bits |= exponent + 112 << 23 | digits << 13;
  else if (digits) { /* denormal: a normal float */
    for (exponent = 113; !(digits & 0x400); exponent--) digits <<= 1;
    found.bits |= exponent << 23 | (digits & 0x3ff) << 13;
  }
  return found.value;
}

/* The nearest one; of two equally near ones the even one. */
static inline unsigned short half_of_float(float value)
{
  union { float value; unsigned bits; } given = {value};
  unsigned sign = given.bits >> 16 & 0x8000, rest = given.bits & 0x7fffffff, shift, digits;
  if (rest > 0x7f800000) return sign | 0x7e00 | (rest >> 13 & 0x1ff);
  if (rest >= 0x47800000) return sign | 0x7c00;
  if (rest >= 0x38800000) return sign | rest + 0xfff + (rest >> 13 & 1) - 0x38000000 >> 13;
  shift = 126 - (rest >> 23); /* denormal: multiples of 2^-24 */
  if (shift > 24) return sign;
  digits = rest & 0x7fffff | 0x800000;
  return sign | digits + (1u << shift - 1) - 1 + (digits >> shift & 1) >> shift;
}

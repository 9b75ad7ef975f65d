/* <tgmath.h> for the Tiny C Compiler, which has none, and the words of GCC that it lacks: a kernel
   text includes this header first. A function of a float is that of a float, of any other number
   that of a double, as GCC takes them. */
#include <math.h>
#include <halves.h>

#define _Pragma(text)
#define __builtin_prefetch(address) ((void)0)
#define __builtin_popcount(bits) popcount_of(bits)

static inline int popcount_of(unsigned bits)
{
  int count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}

/* x + 0 has the type of x without its qualifiers. */
#define OF_ONE(name, x) _Generic((x) + 0, float: name##f, default: name)(x)
#define CHOSEN(name, x, y) \
  _Generic((x) + 0, float: _Generic((y) + 0, float: name##f, default: name), default: name)
#define OF_TWO(name, x, y) CHOSEN(name, x, y)(x, y)

#define acos(x) OF_ONE(acos, x)
#define asin(x) OF_ONE(asin, x)
#define atan(x) OF_ONE(atan, x)
#define cbrt(x) OF_ONE(cbrt, x)
#define ceil(x) OF_ONE(ceil, x)
#define cos(x) OF_ONE(cos, x)
#define cosh(x) OF_ONE(cosh, x)
#define erf(x) OF_ONE(erf, x)
#define exp(x) OF_ONE(exp, x)
#define exp2(x) OF_ONE(exp2, x)
#define expm1(x) OF_ONE(expm1, x)
#define fabs(x) OF_ONE(fabs, x)
#define floor(x) OF_ONE(floor, x)
#define log(x) OF_ONE(log, x)
#define log10(x) OF_ONE(log10, x)
#define log1p(x) OF_ONE(log1p, x)
#define log2(x) OF_ONE(log2, x)
#define rint(x) OF_ONE(rint, x)
#define round(x) OF_ONE(round, x)
#define sin(x) OF_ONE(sin, x)
#define sinh(x) OF_ONE(sinh, x)
#define sqrt(x) OF_ONE(sqrt, x)
#define tan(x) OF_ONE(tan, x)
#define tanh(x) OF_ONE(tanh, x)
#define trunc(x) OF_ONE(trunc, x)
#define atan2(x, y) OF_TWO(atan2, x, y)
#define copysign(x, y) OF_TWO(copysign, x, y)
#define fmax(x, y) OF_TWO(fmax, x, y)
#define fmin(x, y) OF_TWO(fmin, x, y)
#define fmod(x, y) OF_TWO(fmod, x, y)
#define hypot(x, y) OF_TWO(hypot, x, y)
#define pow(x, y) OF_TWO(pow, x, y)
#define fma(x, y, z) \
  _Generic((z) + 0, float: CHOSEN(fma, x, y), default: fma)(x, y, z)
#define ldexp(x, n) _Generic((x) + 0, float: ldexpf, default: ldexp)(x, n)

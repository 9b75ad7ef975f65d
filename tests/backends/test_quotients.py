"""Quotients and roots of the moment sweep without branches: their roundings, compiled for a CPU.

A GPU approximates 1 / x and 1 / sqrt(x) with an error of about one unit in the last place; here the
approximations are one unit too small, right and one unit too large.
"""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
from support.emulated_device import command, compiled

from mpilbm.codegen import sweep

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")

HEAD = """
#include <cmath>
#include <cfloat>
#define INLINE static inline
using std::fma;
static int units;
static float shifted(float value) { return units ? std::nextafter(value, units * FLT_MAX) : value; }
"""
TAIL = """
extern "C" void quotients(int shift, int n, const float* a, const float* b, float* out)
{
  units = shift;
  for (int i = 0; i < n; i++) out[i] = quotient(a[i], b[i]);
}
extern "C" void roots(int shift, int n, const float* a, float* out)
{
  units = shift;
  for (int i = 0; i < n; i++) out[i] = root(a[i]);
}
"""
APPROXIMATION = re.compile(
    r'asm\("(\w+)\.approx\.ftz\.f32 %0, %1;" : "=f"\((\w+)\) : "f"\((.*)\)\);'
)
VALUES = {"rcp": "1.0 / ({})", "rsqrt": "1.0 / std::sqrt((double)({}))"}


def between(text: str, begin: str, end: str) -> str:
    return text[text.index(begin) : text.index(end)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = Path(sweep.__file__).with_name("copies.h").read_text("utf-8")
    text = "".join(
        between(text, f"INLINE float {name}(", f"INLINE double {name}(")
        for name in ("reciprocal", "quotient")
    )
    text, count = APPROXIMATION.subn(
        lambda found: f"{found[2]} = shifted((float)({VALUES[found[1]].format(found[3])}));", text
    )
    assert count == 2
    path = tmp_path_factory.mktemp("quotients") / "quotients.so"
    path.write_bytes(compiled(HEAD + text + TAIL, ("-shared",)))
    return ctypes.CDLL(str(path))


def results(function, shift: int, *values: np.ndarray) -> np.ndarray:
    out = np.empty_like(values[0])
    function(shift, out.size, *(ctypes.c_void_p(v.ctypes.data) for v in (*values, out)))
    return out


def numbers(rng, low: int, high: int, count: int) -> np.ndarray:
    """float32 numbers from 2^low to 2^high, their logarithms evenly distributed."""
    mantissas = rng.integers(2**23, 2**24, count).astype(np.float32)
    return np.ldexp(mantissas, rng.integers(low, high, count) - 23).astype(np.float32)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_quotients_are_rounded_as_by_a_division(library, shift):
    rng = np.random.default_rng(1)
    a, b = numbers(rng, -60, 20, 200_000), numbers(rng, -20, 20, 200_000)
    a[::2] *= -1
    a[:1000], b[1000:2000] = 0, 1
    a[2000:3000] = b[2000:3000]
    found, expected = results(library.quotients, shift, a, b), a / b
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_roots_are_rounded_as_by_sqrt(library, shift):
    """Also of zeros, of numbers below the normal ones, and of the largest one."""
    rng = np.random.default_rng(2)
    limits = np.finfo(np.float32)
    special = [0, -0.0, 1, 4, limits.smallest_subnormal, limits.tiny, 2.0**-96, limits.max]
    special += [np.nextafter(value, np.float32(3)) for value in np.float32([1, 4, 2.0**-96])]
    tiny = rng.integers(1, 2**23, 20_000).astype(np.uint32).view(np.float32)
    a = np.concatenate([np.float32(special), tiny, numbers(rng, -126, 127, 200_000)])
    found, expected = results(library.roots, shift, a), np.sqrt(a)
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_infinity_is_not_hidden(library):
    """A flow that is no longer finite stays so."""
    a, b = np.float32([np.inf, np.nan, 1, 0]), np.float32([1, 1, np.nan, 0])
    assert not np.isfinite(results(library.quotients, 0, a, b)).any()
    assert not np.isfinite(results(library.roots, 0, np.float32([np.inf, np.nan]))).any()

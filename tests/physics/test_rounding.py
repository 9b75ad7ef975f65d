"""Small deviations keep their digits in 32 bits, whatever the collision."""

from fractions import Fraction

import numpy as np
import pytest
from support.equations import FLOWS, Numbers, model, over_forces, rational_numbers

from mpilbm.core.registry import make

FRACTIONS = [p for p in FLOWS if rational_numbers(make("collisions", p.values[1]))]


class Single:
    """A number that each operation rounds to 32 bits."""

    def __init__(self, value):
        self.value = value if isinstance(value, np.float32) else np.float32(float(value))

    def __float__(self):
        return float(self.value)

    def __eq__(self, other):
        return float(self) == float(other)

    def __pow__(self, power):
        return self if power == 1 else self * self ** (power - 1)


def rounded(name):
    def operation(self, other):
        other = other if isinstance(other, Single) else Single(other)
        return Single(getattr(self.value, name)(other.value))

    return operation


for name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Single, f"__{name}__", rounded(f"__{name}__"))


@pytest.mark.parametrize("speed", [0, 0.05])
@over_forces
@pytest.mark.parametrize(("lattice", "collision"), FRACTIONS)
def test_small_deviations_keep_their_digits(lattice, collision, force, speed):
    """Eight units in the last place of the largest value: of 1e-5 beside weights of up to 8/27."""
    one, rng = model(lattice, collision, force, True), np.random.default_rng(5)
    still = one.collision.feq(one.lattice, 0, 1, [speed] * one.lattice.D)
    noise = rng.uniform(-1e-5, 1e-5, one.lattice.Q)
    f = [Single(a + b) for a, b in zip(still, noise, strict=True)]
    rates = {name: Single(rate) for name, rate in one.collision.rates(0.02, one.lattice).items()}
    found = {}
    for number in (Single, lambda value: Fraction(float(value))):
        push = {f"force_{axis}": number(Single(1e-7)) for axis in "xyz"}
        given = {name: number(rate) for name, rate in rates.items()}
        found[number] = one.collide(Numbers(**push), [number(f_i) for f_i in f], given)
    single, exact = (np.array([float(value) for value in left]) for left in found.values())
    assert np.abs(single - exact).max() < 8 * 2**-23 * np.abs(exact).max()

"""The rise of velocities and forces at a start: smooth, exact at both ends, in all forms."""

import numpy as np
import pytest

from mpilbm.core.formulas.given_functions import GivenFunction, PointValue
from mpilbm.core.formulas.ramp import rise
from mpilbm.core.formulas.values import CellValue, Plane, Series, has_ramp, ramped, unramped

N = 40
T = np.arange(2 * N)


def values(value) -> np.ndarray:
    given = CellValue("u", value, 2)
    return np.array([given.evaluate((8, 8), float(t))["u"] for t in T])


def test_it_is_smooth_and_exact_at_both_ends():
    s = rise(T, N)
    assert s[0] == 0
    assert (s[N:] == 1).all()
    assert s[N // 2] == pytest.approx(0.5, abs=1e-15)
    assert (np.diff(s[: N + 1]) > 0).all()
    assert np.abs(np.diff(s, 2)).max() < 1.001 * (np.pi / N) ** 2 / 2  # no jump of ds/dt


@pytest.mark.parametrize("value", [0.05, -0.1, "0.05 + 0.01*sin(t/3)"])
def test_numbers_and_formulas_rise(value):
    found, without = values(ramped(value, N)), values(value)
    assert np.allclose(found, without * rise(T, N), rtol=1e-15, atol=1e-17)
    assert np.array_equal(found[N:], without[N:])


def test_files_of_times_and_functions_rise():
    series = Series(np.array([0.0, 100.0]), np.array([0.1, 0.2]))
    assert np.array_equal(ramped(series, N).at(T), series.at(T) * rise(T, N))
    function = PointValue(GivenFunction(lambda x, y: x * y, 2, "boundary.0.velocity.0"))
    points = np.array([1.0, 2.0]), np.array([0.5, 4.0])
    late = ramped(function, N)
    assert late.timed
    assert not function.timed
    assert np.array_equal(late.at(points, 10.0), function.at(points, 10.0) * rise(10, N))


def test_no_ramp_and_no_value_change_nothing():
    plane = Plane(np.ones((3, 4)))
    assert ramped(0.05, 0) == 0.05
    assert ramped("0.1*y", 0) == "0.1*y"
    assert ramped(0.0, N) == 0
    assert unramped(ramped("0.1*y", N)) == "0.1*y"
    assert ramped(plane, N) is plane
    assert not has_ramp(plane)

"""Planes of random numbers with a given length of correlation, by a digital filter.

The numbers are keyed by (seed, stream, plane, cell), so that they are the same on any number of
ranks and after a restart, without a state.
"""

from collections.abc import Sequence
from math import ceil, pi

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
REACH = 2  # lengths to which the filter extends on each side
FACTORS = (2, 3, 5)  # of sizes of which Fourier transforms are fast
KNOTS = 4  # planes from which a number at one time follows
SPACING = 315 / 302  # integral time, in distances of planes: (sum b)^2 / (2 sum b^2) of the spline


class RandomPlanes:
    """Independent planes of numbers xi(y, z) with mean 0, variance 1 and Gaussian correlation.

        xi = sum_j sum_k b_j b_k r(y + j, z + k),  b_k ~ exp(-pi k^2 / (2 L^2)),  |k| <= 2 L
        <xi(x) xi(x + r)> = exp(-pi r^2 / (4 L^2)),  with the integral length L

    r are uniform random numbers; sums of so many are nearly Gaussian. L in cells, at least 2.
    [Klein, Sadiki & Janicka 2003, J. Comput. Phys. 186, 652]

    shape     cells along both axes of the plane, slowest first
    periodic  whether the plane is periodic along them
    """

    def __init__(
        self,
        shape: Sequence[int],
        periodic: Sequence[bool],
        length: float,
        seed: int,
        stream: int,
    ):
        self.shape, self._key = tuple(shape), (seed, stream)
        reach = ceil(REACH * length)
        along = zip(self.shape, periodic, strict=True)
        sizes = [n if wraps else fast_size(n + 2 * reach) for n, wraps in along]
        self._sizes = sizes[0], sizes[1]
        taps = [_taps(n, length, reach) for n in sizes]
        self._spectrum = np.fft.rfft2(np.outer(*taps)).real  # the filter is even

    def plane(self, number: int, count: int) -> Floats:
        """The numbers of a plane, `count` independent ones in each cell: (count, *shape).

        number: from -2^62 to 2^62.
        """
        seed, stream = self._key
        counter = np.array([0, number % 2**64, stream, 0], np.uint64)
        raw = np.random.Philox(key=seed, counter=counter)
        bits = raw.random_raw(count * self._sizes[0] * self._sizes[1]) >> np.uint64(11)
        r = ((bits + 0.5) * 2.0**-53 - 0.5) * np.sqrt(12)
        return self._filtered(r.reshape(count, *self._sizes), self._spectrum)

    def correlated(self, weights: Floats) -> Floats:
        """sum_y w(y) <xi(x) xi(y)> in each cell x, of weights (*shape)."""
        padded = np.zeros(self._sizes)
        padded[: self.shape[0], : self.shape[1]] = weights
        return self._filtered(padded, self._spectrum**2)

    def _filtered(self, values: Floats, spectrum: Floats) -> Floats:
        found = np.fft.irfft2(np.fft.rfft2(values) * spectrum, self._sizes)
        return found[..., : self.shape[0], : self.shape[1]]


def _taps(size: int, length: float, reach: int) -> Floats:
    """The filter b on a circle of `size` cells, centred at cell 0; sum b^2 = 1."""
    found = np.zeros(size)
    k = np.arange(-reach, reach + 1)
    np.add.at(found, k % size, np.exp(-pi * k**2 / (2 * length**2)))
    return found / np.sqrt((found**2).sum())


def fast_size(least: int) -> int:
    """The smallest number from `least` on without prime factors above 5."""
    size = least
    while True:
        rest = size
        for factor in FACTORS:
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1


def knots(place: float) -> tuple[int, Floats]:
    """The first of KNOTS planes, and their weights, of the number at `place` between the planes.

        u(s) = sum_m B(s - m) xi_m / sqrt(sum_m B(s - m)^2)

    s is the time in distances of planes and B the cubic B-spline, the filter along the time: u and
    its first two derivatives are continuous, and its variance is that of xi at any time.
    """
    first = int(np.floor(place))
    p = place - first
    w = [(1 - p) ** 3, 3 * p**3 - 6 * p**2 + 4, -3 * p**3 + 3 * p**2 + 3 * p + 1, p**3]
    weights = np.array(w)
    return first - 1, weights / np.sqrt((weights**2).sum())

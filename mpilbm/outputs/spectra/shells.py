"""Energy, its changes and enstrophy of a velocity in shells of wave numbers.

A shell contains the waves with |k - |k'|| < dk/2, where dk = 2 pi / (longest side) radians per cell
and k is a multiple of dk.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.floating]
Waves = NDArray[np.complex128]


def shell(longest: int, periods: Sequence[Real]) -> NDArray[np.int64]:
    """The numbers of the shells of waves with so many periods per cell along each axis."""
    return np.rint(longest * np.sqrt(sum(each**2 for each in periods))).astype(np.int64)


class Shells:
    """The waves of a real field in a box of `shape` (nz, ny, nx); one of conjugate waves is stored.

    The waves of a plane along y and x form `columns` columns along z. In 2D, `shape` is (ny, 1, nx)
    and the axis along which columns lie is y.
    """

    def __init__(self, shape: tuple[int, int, int]):
        nz, ny, nx = self.shape = shape
        self.longest = max(shape)
        self.dk = 2 * np.pi / self.longest
        self.z, y, x = np.fft.fftfreq(nz), np.fft.fftfreq(ny), np.fft.rfftfreq(nx)
        self.y, self.x = (each.ravel() for each in np.meshgrid(y, x, indexing="ij"))
        self.columns = self.x.size
        stands_for = np.full(x.size, 2.0)  # waves: itself and its conjugate
        stands_for[:: nx // 2 if nx % 2 == 0 else nx] = 1
        self.weights = np.tile(stands_for, ny) / float(nx * ny * nz) ** 2
        largest = [np.array(np.abs(each).max()) for each in (x, y, self.z)]
        self.count = int(shell(self.longest, largest)) + 1

    @property
    def k(self) -> Real:
        """The wave number of each shell in radians per cell."""
        return self.dk * np.arange(self.count)

    def in_planes(self, values: Real) -> Waves:
        """The transform of planes (n, ny, nx) along x and y: (n, columns)."""
        return np.fft.rfftn(values, axes=(1, 2)).reshape(len(values), -1)

    def cells(self, waves: Waves) -> Real:
        """Planes (n, ny, nx) from their transform along x and y, (n, columns)."""
        _, ny, nx = self.shape
        return np.fft.irfftn(waves.reshape(len(waves), ny, -1), (ny, nx), axes=(1, 2))

    def wave_numbers(self, D: int, begin: int, end: int) -> list[Real]:
        """k along each of the D axes of the columns begin..end, in radians per cell."""
        x, y, z = self._periods(begin, end)
        return [2 * np.pi * each for each in ((x, y, z) if D == 3 else (x, z))]

    def resolved(self, begin: int, end: int) -> NDArray[np.bool_]:
        """The waves of columns begin..end with less than 1/3 period per cell along each axis."""
        nz, ny, nx = self.shape
        x, y, z = (
            3 * np.rint(np.abs(each) * n) < n
            for each, n in zip(self._periods(begin, end), (nx, ny, nz), strict=True)
        )
        return x & y & z

    def spectra(self, waves: Sequence[Waves], begin: int, end: int) -> Real:
        """Energy, squared gradient and enstrophy of columns begin..end in each shell, (3, count).

        `waves`: of each component of u, (nz, end - begin), transformed along all axes. With
        a = k.u(k),

            energy = sum |u(k)|^2 / 2,    gradient = sum k^2 |u(k)|^2 / 2,
            enstrophy = sum (k^2 |u(k)|^2 - |a|^2) / 2
        """
        k = self.wave_numbers(len(waves), begin, end)
        squares = added(square(each) for each in waves)
        along = added(component * each for component, each in zip(k, waves, strict=True))
        gradient = added(component**2 for component in k) * squares
        values = squares, gradient, gradient - square(along)
        return np.stack([self.summed(each / 2, begin, end) for each in values])

    def summed(self, values: Real, begin: int, end: int) -> Real:
        """The sums over each shell, (count,), of values (nz, end - begin) of waves; conjugate ones
        included, divided by the squared number of cells."""
        numbers = shell(self.longest, self._periods(begin, end)).ravel()
        weighted = (values * self.weights[begin:end]).ravel()
        return np.bincount(numbers, weighted, self.count).astype(np.float64, copy=False)

    def _periods(self, begin: int, end: int) -> tuple[Real, Real, Real]:
        """Periods per cell along x, y, z of the waves of columns begin..end."""
        columns = slice(begin, end)
        return self.x[columns][None], self.y[columns][None], self.z[:, None]


def added(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """The sum of arrays, in their order."""
    return reduce(np.add, parts)


def square(waves: Waves) -> Real:
    """|w|^2."""
    return waves.real**2 + waves.imag**2

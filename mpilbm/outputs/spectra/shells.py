"""Energy and enstrophy of a velocity in shells of wave numbers.

A shell contains the waves with |k - |k'|| < dk/2, where dk = 2 pi / (longest side) radians per cell
and k is a multiple of dk.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.floating]
Waves = NDArray[np.complex128]


def shell(longest: int, periods: Sequence[Real]) -> NDArray[np.int64]:
    """The numbers of the shells of waves with so many periods per cell along each axis."""
    return np.rint(longest * np.sqrt(sum(each**2 for each in periods))).astype(np.int64)


class Shells:
    """The waves of a real field in a box of `shape` (nz, ny, nx); one of conjugate waves is stored.

    The waves of a plane along y and x form `columns` columns along z.
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

    def spectra(self, waves: Sequence[Waves], begin: int, end: int) -> Real:
        """Energy and enstrophy of columns begin..end in each shell, (2, count).

        `waves`: of each component of u, (nz, end - begin), transformed along x and y. With their
        transforms u(k) along z, and a = k.u(k),

            energy = sum |u(k)|^2 / 2,    enstrophy = sum (k^2 |u(k)|^2 - |a|^2) / 2
        """
        columns, D = slice(begin, end), len(waves)
        z = self.z[:, None]
        periods = self.x[columns][None], self.y[columns][None], z
        # in 2D the rows of the box are its planes
        axes = periods if D == 3 else (periods[0], periods[2])
        u = [np.fft.fft(each, axis=0) for each in waves]
        squares = sum(square(each) for each in u)
        along = sum(2 * np.pi * k * each for k, each in zip(axes, u, strict=True))
        curl = (2 * np.pi) ** 2 * sum(k**2 for k in axes) * squares - square(along)
        numbers = shell(self.longest, periods).ravel()
        weights = self.weights[columns] / 2
        return np.stack([
            np.bincount(numbers, (each * weights).ravel(), self.count) for each in (squares, curl)
        ])  # fmt: skip


def square(waves: Waves) -> Real:
    """|w|^2."""
    return waves.real**2 + waves.imag**2

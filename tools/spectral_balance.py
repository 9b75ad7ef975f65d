"""Enstrophy and dilatation of a flow in a periodic box, by Fourier transforms of its snapshot."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

ROWS = 16  # or planes, in a piece of work


def sums(u, rho) -> dict[str, float]:
    """Means over the cells of omega.omega / 2, (div u)^2 and (rho - 1) div u.

    u (nz, ny, nx, 3) and rho (nz, ny, nx) are arrays or datasets, of which one component at a time
    is transformed, in single precision if they are, on all cores: in memory lie two complex fields
    of half the cells. With a = k.u of the transforms, by Parseval's theorem

        omega.omega = sum k^2 |u|^2 - |a|^2,  (div u)^2 = sum |a|^2,  rho div u = sum Im(rho conj a)
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        box = Transforms(rho.shape, u.dtype, pool)
        gradients = sum(
            box.sum(lambda begin, end, axis=axis: u[begin:end][..., axis], partial(velocity, axis))
            for axis in range(3)
        )
        work = box.sum(lambda begin, end: rho[begin:end] - 1, density)
        dilatation = sum(pool.map(lambda plane: box.weighed(square(plane)[None]), box.along))
    return {"enstrophy": (gradients - dilatation) / 2, "dilatation": dilatation, "work": work}


class Transforms:
    """The waves of one field and k.u, which grows from one component to the next."""

    def __init__(self, shape, kind, pool):
        nz, ny, nx = shape
        self.shape, self.map = shape, pool.map
        kind = np.result_type(kind, np.complex64)
        self.waves, self.along = (np.zeros((nz, ny, nx // 2 + 1), kind) for _ in range(2))
        axes = np.fft.fftfreq(nz), np.fft.fftfreq(ny), np.fft.rfftfreq(nx)
        axes = ((2 * np.pi * axis).astype(self.waves.real.dtype) for axis in axes)
        self.k_z, self.k_y, self.k_x = np.meshgrid(*axes, indexing="ij", sparse=True)
        twice = np.full(nx // 2 + 1, 2.0)  # of the conjugate waves only one half is computed
        twice[:: nx // 2 if nx % 2 == 0 else nx] = 1
        self.weights = twice / float(nx * ny * nz) ** 2

    def weighed(self, values) -> float:
        """The sum over waves (z, y, x), both halves."""
        return (values.sum(axis=(0, 1), dtype=np.float64) * self.weights).sum()

    def sum(self, field, finish) -> float:
        """Of finish(k, waves, along), values of some rows; field(begin, end) gives planes."""
        nz, ny, _ = self.shape
        list(self.map(partial(self._flat, field), range(0, nz, ROWS)))
        return sum(self.map(partial(self._upright, finish), range(0, ny, ROWS)))

    def _flat(self, field, begin):
        planes = slice(begin, begin + ROWS)
        self.waves[planes] = np.fft.rfftn(field(begin, begin + ROWS), axes=(1, 2))

    def _upright(self, finish, begin):
        rows = slice(begin, begin + ROWS)
        found = np.fft.fft(self.waves[:, rows], axis=0)
        k = self.k_x, self.k_y[:, rows], self.k_z
        return self.weighed(finish(k, found, self.along[:, rows]))


def square(waves):
    """|w|^2."""
    return waves.real**2 + waves.imag**2


def velocity(axis, k, waves, along):
    """k^2 |u|^2 of a component, which is added to k.u."""
    along += k[axis] * waves
    return sum(each**2 for each in k) * square(waves)


def density(k, waves, along):
    """Of rho div u."""
    return (waves * along.conj()).imag

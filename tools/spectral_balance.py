"""Enstrophy, dilatation and spectrum of a snapshot of a periodic box, by Fourier transforms."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from mpilbm.outputs.spectra import shell

ROWS = 4  # or planes, processed at a time by each core


def sums(u, rho) -> dict[str, float]:
    """Means over the cells of omega.omega / 2, (div u)^2 and (rho - 1) div u.

    u (nz, ny, nx, 3) and rho (nz, ny, nx) are arrays or datasets, of which one component at a time
    is transformed, in their precision, on all cores. Requires memory for two complex fields of half
    the cells. With a = k.u of the transforms, by Parseval's theorem

        omega.omega = sum k^2 |u|^2 - |a|^2,  (div u)^2 = sum |a|^2,  rho div u = sum Im(rho conj a)
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        box = Transforms(rho.shape, u.dtype, pool)
        along = np.zeros_like(box.waves)
        gradients = sum(
            box.sum(partial(component, u, axis), partial(velocity, box, along, axis))
            for axis in range(3)
        )
        work = box.sum(lambda begin, end: rho[begin:end] - 1, partial(density, box, along))
        dilatation = sum(pool.map(lambda plane: box.weighed(square(plane)[None]), along))
    return {"enstrophy": (gradients - dilatation) / 2, "dilatation": dilatation, "work": work}


def spectrum(u, size) -> tuple[np.ndarray, np.ndarray]:
    """k (radians a cell) and E(k) of u (nz, ny, nx, components); `size` x, y(, z).

    sum_k E(k) dk = <u.u> / 2,  E(k) = sum over the shell |k - |k'|| < dk/2 of |u(k')|^2 / (2 dk)

    with dk = 2 pi / (longest side). One component at a time is transformed, on all cores and always
    in double precision, so that rounding does not hide weak waves. Needs memory for one complex
    field of half the cells.
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        box = Transforms((*size, 1)[2::-1], np.float64, pool)
        shells = partial(in_shells, box, max(size))
        parts = (partial(component, u, axis) for axis in range(len(size)))
        energy = sum(box.sum(part, shells) for part in parts) / 2
    dk = 2 * np.pi / max(size)
    return dk * np.arange(energy.size), energy / dk


class Transforms:
    """The Fourier transform of one field, in the precision (single or double) of `kind`."""

    def __init__(self, shape, kind, pool):
        nz, ny, nx = shape
        self.shape, self.map = shape, pool.map
        kind = np.result_type(kind, np.complex64)
        self.waves = np.empty((nz, ny, nx // 2 + 1), kind)
        axes = np.fft.fftfreq(nz), np.fft.fftfreq(ny), np.fft.rfftfreq(nx)
        self.axes = np.meshgrid(*axes, indexing="ij", sparse=True)
        twice = np.full(nx // 2 + 1, 2.0)  # conjugate waves are computed once
        twice[:: nx // 2 if nx % 2 == 0 else nx] = 1
        self.weights = twice / float(nx * ny * nz) ** 2

    def periods(self, rows=slice(None)):
        """Periods per cell of the waves of some rows, along x, y, z."""
        z, y, x = self.axes
        return x, y[:, rows], z

    def weighed(self, values) -> float:
        """The sum over all waves (z, y, x), conjugate ones included."""
        return (values.sum(axis=(0, 1), dtype=np.float64) * self.weights).sum()

    def sum(self, field, finish) -> float:
        """The sum of finish(rows, waves) over slices of rows; field(begin, end) returns planes."""
        nz, ny, _ = self.shape
        list(self.map(partial(self._flat, field), range(0, nz, ROWS)))
        return sum(self.map(partial(self._upright, finish), range(0, ny, ROWS)))

    def _flat(self, field, begin):
        planes = np.asarray(field(begin, begin + ROWS), self.waves.real.dtype)
        self.waves[begin : begin + ROWS] = np.fft.rfftn(planes, axes=(1, 2))

    def _upright(self, finish, begin):
        rows = slice(begin, begin + ROWS)
        return finish(rows, np.fft.fft(self.waves[:, rows], axis=0))


def square(waves):
    """|w|^2."""
    return waves.real**2 + waves.imag**2


def component(u, axis, begin, end):
    """Planes of one component of a velocity."""
    return u[begin:end][..., axis]


def velocity(box, along, axis, rows, waves):
    """k^2 |u|^2 of a component, which is added to k.u."""
    k = [(2 * np.pi * each).astype(waves.real.dtype) for each in box.periods(rows)]
    along[:, rows] += k[axis] * waves
    return box.weighed(sum(each**2 for each in k) * square(waves))


def density(box, along, rows, waves):
    """The contribution to rho div u."""
    return box.weighed((waves * along[:, rows].conj()).imag)


def in_shells(box, longest, rows, waves):
    """|u|^2 of a component by shells."""
    numbers = shell(longest, box.periods(rows))
    last = shell(longest, [np.abs(axis).max() for axis in box.periods()])
    return np.bincount(numbers.ravel(), (square(waves) * box.weights).ravel(), last + 1)

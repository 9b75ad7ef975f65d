"""Spectra of a velocity that is distributed over ranks in slabs, in shells of wave numbers.

A shell contains the waves with |k - |k'|| < dk/2, where dk = 2 pi / (longest side) radians per cell
and k is a multiple of dk.

```
rank 0  planes 0, 1 | in_planes | columns: block 0, 2, … of all planes | along z | shells
rank 1  planes 2, 3 | in_planes |          block 1, 3, … of all planes | along z | shells
                    no messages | alltoall, a block a rank at a time               | gather
```
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mpilbm.parallel import Communicator, MessagePassing
from mpilbm.storage.planes import blocks

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


COLUMNS = 1024  # of a block; its shells are summed together, so the bits depend on this number

# The sums (rows, count) of columns begin..end in shells, and the columns that replace theirs; from
# columns (nz, end - begin) of each array, transformed along x and y only, begin and end
Evaluate = Callable[[Sequence[Waves], int, int], tuple[Real, Sequence[Waves]]]


def spectra(comm: Communicator, shells: Shells, local: Sequence[Waves]) -> Real | None:
    """Energy, squared gradient and enstrophy in shells, (3, count); see Shells.spectra, in_shells.

    `local`: for each component of u the result of `Shells.in_planes` for the planes of this rank.
    """

    def evaluate(columns: Sequence[Waves], begin: int, end: int) -> tuple[Real, Sequence[Waves]]:
        return shells.spectra([np.fft.fft(each, axis=0) for each in columns], begin, end), ()

    return in_shells(comm, shells, local, evaluate)


def in_shells(
    comm: Communicator,
    shells: Shells,
    local: Sequence[Waves],
    evaluate: Evaluate,
    results: Sequence[Waves] = (),
) -> Real | None:
    """The sums of `evaluate` over all columns on rank 0; None on the others. Collective.

    local    arrays (planes of this rank, columns), transformed along x and y
    results  arrays of the same shape that get the columns that `evaluate` returns; they may be
             those of `local`

    A block of columns is evaluated by one rank, and rank 0 adds the blocks in their order: the bits
    do not depend on the number of ranks.
    """
    starts = range(0, shells.columns, COLUMNS)
    found: list[tuple[int, Real]] = []
    for first in range(0, len(starts), comm.size):
        blocks = [(b, min(b + COLUMNS, shells.columns)) for b in starts[first : first + comm.size]]
        returned: Sequence[Waves] = ()
        columns = collect(comm, local, blocks)
        if columns is not None:
            begin, end = blocks[comm.rank]
            sums, returned = evaluate(columns, begin, end)
            found.append((begin, sums))
        if results:
            distribute(comm, results, blocks, returned)
    parts = comm.gather(found)
    if parts is None:
        return None
    summed = dict(each for of_rank in parts for each in of_rank)
    total = np.zeros_like(summed[0])
    for begin in starts:
        total += summed[begin]
    return total


def collect(
    comm: Communicator, local: Sequence[Waves], blocks: Sequence[tuple[int, int]]
) -> Sequence[Waves] | None:
    """All planes of this rank's block of columns, for each array; None without a block."""
    if comm.size == 1:
        return [each[:, slice(*blocks[0])] for each in local]
    sent: list[Waves | None] = [None] * comm.size
    for rank, (begin, end) in enumerate(blocks):
        sent[rank] = np.stack([each[:, begin:end] for each in local])
    received = cast(MessagePassing, comm).alltoall(sent)
    return list(np.concatenate(received, axis=1)) if comm.rank < len(blocks) else None


def distribute(
    comm: Communicator,
    results: Sequence[Waves],
    blocks: Sequence[tuple[int, int]],
    columns: Sequence[Waves],
) -> None:
    """The inverse of `collect`: this rank's columns, if it has a block, go to their planes."""
    if comm.size == 1:
        for each, values in zip(results, columns, strict=True):
            each[:, slice(*blocks[0])] = values
        return
    ends = np.cumsum([0, *comm.allgather(len(results[0]))])
    sent: list[Waves | None] = [None] * comm.size
    if comm.rank < len(blocks):
        stacked = np.stack(columns)
        sent = [stacked[:, begin:end] for begin, end in pairwise(ends)]
    received = cast(MessagePassing, comm).alltoall(sent)
    for (begin, end), values in zip(blocks, received, strict=False):
        for each, part in zip(results, values, strict=True):
            each[:, begin:end] = part


def with_transfer(comm: Communicator, shells: Shells, local: list[Waves]) -> Real | None:
    """The rows of `spectra`, and the transfer, (4, count), on rank 0. Collective.

        transfer = sum Re(conj(v(k)).(v x omega)(k)),    omega = curl v

    where v is the part of u without divergence, of the waves with less than 1/3 period per cell
    along each axis (the 2/3 rule: the product then has no aliasing error at these waves). The sum
    over all shells is 0 up to rounding, since v.(v x omega) = 0 in each cell. The pressure and the
    gradient of v.v / 2 do not appear, because v has no divergence. Overwrites `local`.
    [Orszag 1971, J. Atmos. Sci. 28, 1074; Pope 2000, section 6.4]

    ```
    columns along z  u(k) | spectra; v = part of u without divergence and short waves; omega
    planes           v, omega in the cells | v x omega | along x and y
    columns along z  v(k), (v x omega)(k) | shells
    ```
    """
    D = len(local)
    products = [np.empty_like(each) for each in local]

    def filtered(columns: Sequence[Waves], begin: int, end: int) -> tuple[Real, list[Waves]]:
        u = [np.fft.fft(each, axis=0) for each in columns]
        k = shells.wave_numbers(D, begin, end)
        v = without_divergence(k, u, shells.resolved(begin, end))
        returned = [np.fft.ifft(each, axis=0) for each in (*v, *curl(k, v))]
        return shells.spectra(u, begin, end), returned

    def transferred(columns: Sequence[Waves], begin: int, end: int) -> tuple[Real, list[Waves]]:
        waves = [np.fft.fft(each, axis=0) for each in columns]
        pairs = zip(waves[:D], waves[D:], strict=True)
        rate = added(v.real * n.real + v.imag * n.imag for v, n in pairs)
        return shells.summed(rate * shells.resolved(begin, end), begin, end)[None], []

    parts = in_shells(comm, shells, local, filtered, [*local, *products[: 1 if D == 2 else 3]])
    cross_in_cells(shells, local, products)
    transfer = in_shells(comm, shells, [*local, *products], transferred)
    return None if parts is None or transfer is None else np.concatenate([parts, transfer])


def cross_in_cells(shells: Shells, v: Sequence[Waves], products: Sequence[Waves]) -> None:
    """Replace the vorticity in `products` by v x omega; all transformed along x and y."""
    D, (_, ny, nx) = len(v), shells.shape
    for begin, end in blocks(len(v[0]), 8 * 2 * D * ny * nx):
        velocity = [shells.cells(each[begin:end]) for each in v]
        omega = [shells.cells(each[begin:end]) for each in products[: 1 if D == 2 else 3]]
        for each, values in zip(products, cross(velocity, omega), strict=True):
            each[begin:end] = shells.in_planes(values)


def without_divergence(k: Sequence[Real], u: Sequence[Waves], keeps: np.ndarray) -> list[Waves]:
    """(u - k (k.u) / k^2) of the waves that `keeps` selects, 0 of the others."""
    squared = np.maximum(added(each**2 for each in k), np.finfo(float).tiny)  # k = 0: k.u = 0
    along = added(each * component for each, component in zip(k, u, strict=True)) / squared
    return [(each - component * along) * keeps for component, each in zip(k, u, strict=True)]


def curl(k: Sequence[Real], v: Sequence[Waves]) -> list[Waves]:
    """i k x v: three components, in 2D the one along z."""
    if len(v) == 2:
        return [1j * (k[0] * v[1] - k[1] * v[0])]
    return [1j * (k[a] * v[b] - k[b] * v[a]) for a, b in ((1, 2), (2, 0), (0, 1))]


def cross(v: Sequence[Real], omega: Sequence[Real]) -> list[Real]:
    """v x omega; in 2D omega has the component along z only."""
    if len(v) == 2:
        return [v[1] * omega[0], -v[0] * omega[0]]
    return [v[a] * omega[b] - v[b] * omega[a] for a, b in ((1, 2), (2, 0), (0, 1))]

"""The transfer of kinetic energy between shells of wave numbers by the nonlinear term.

```
columns along z  u(k) | spectra; v = part of u without divergence and short waves; omega
planes           v, omega in the cells | v x omega | along x and y
columns along z  v(k), (v x omega)(k) | shells
```
"""

from collections.abc import Sequence

import numpy as np

from mpilbm.outputs.spectra.distributed import in_shells
from mpilbm.outputs.spectra.shells import Real, Shells, Waves, added
from mpilbm.parallel.communicator import Communicator
from mpilbm.storage.planes import blocks


def with_transfer(comm: Communicator, shells: Shells, local: list[Waves]) -> Real | None:
    """The rows of `distributed.spectra`, and the transfer, (4, count), on rank 0. Collective.

        transfer = sum Re(conj(v(k)).(v x omega)(k)),    omega = curl v

    where v is the part of u without divergence, of the waves with less than 1/3 period per cell
    along each axis (the 2/3 rule: the product then has no aliasing error at these waves). The sum
    over all shells is 0 up to rounding, since v.(v x omega) = 0 in each cell. The pressure and the
    gradient of v.v / 2 do not appear, because v has no divergence. Overwrites `local`.
    [Orszag 1971, J. Atmos. Sci. 28, 1074; Pope 2000, section 6.4]
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
        rate = added(v.real * n.real + v.imag * n.imag
                   for v, n in zip(waves[:D], waves[D:], strict=True))  # fmt: skip
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

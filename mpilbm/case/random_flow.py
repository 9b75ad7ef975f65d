"""A divergence-free random velocity: a sum of waves whose energies follow a given spectrum."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from mpilbm.case.tables import Positive
from mpilbm.core.quantity import VELOCITY
from mpilbm.core.registry import Parameters


class RandomFlow(Parameters):
    """A random velocity without divergence, for decaying turbulence in a periodic box, 2D or 3D.

    E(k) ~ k^slope exp(-slope/2 (k/peak)^2),  sum_k E(k) = speed^2 / 2

    k is the number of waves in the longest side of the box. The largest value of E is at `peak`,
    and E is 0 beyond 3 `peak`. Every wave is perpendicular to its wave vector: the divergence is
    zero for derivatives by Fourier transform, and small, of second order, for differences. The mean
    velocity is 0. The flow depends on `seed` and the proportions of the box, not on the number of
    cells or ranks.
    [Rogallo 1981, NASA TM 81315; Orszag & Patterson 1972, Phys. Rev. Lett. 28, 76]
    """

    speed: Annotated[Positive, VELOCITY] = Field(description="rms of |u|", examples=[0.05])
    peak: float = Field(
        4.0,
        ge=1,
        le=24,
        description="wave number of the largest energy, in waves per longest side; below a sixth "
        "of the cells of this side",
        examples=[4],
    )
    slope: float = Field(4.0, gt=0, le=16, description="power of k at small wave numbers")
    seed: int = Field(0, ge=0, lt=2**63, description="another number gives another flow")


CUTOFF = 3  # times the peak: beyond it the spectrum with slope 4 is below 1e-5 of its largest value


@dataclass(frozen=True, eq=False)
class Waves:
    """The waves of a field u(x) = sum_m amplitude_m exp(2 pi i sum_a m_a x_a / n_a).

    amplitude  complex (D, slow, rows, K + 1), the numbers m of the waves along the axis of the
               planes, of the rows and of x; only m_x >= 0, because u is real
    slow, row  the numbers m along the axis of the planes and of the rows
    size       cells along x, y (and z)
    """

    amplitude: np.ndarray
    slow: np.ndarray
    row: np.ndarray
    size: tuple[int, ...]

    def plane(self, plane: int) -> np.ndarray:
        """u (rows, nx, D) at the cell centres of a plane; it does not depend on other planes."""
        nx, n = self.size[0], self.size[-1]
        rows = self.size[1] if len(self.size) == 3 else 1
        turn = np.exp(2j * np.pi * self.slow * ((plane + 0.5) / n))
        waves = (turn[:, None, None] * self.amplitude).sum(axis=1)
        spectrum = np.zeros((len(waves), rows, nx // 2 + 1), complex)
        spectrum[:, self.row % rows, : waves.shape[-1]] = waves
        u = np.fft.irfft2(spectrum, (rows, nx), norm="forward")
        return np.moveaxis(u, 0, -1)


@lru_cache(4)
def waves_of(flow: RandomFlow, size: tuple[int, ...]) -> Waves:
    """The waves of a flow in a periodic box; they do not depend on the number of cells.

    Amplitudes are Gaussian, perpendicular to their wave vector, and scaled so that the energy of
    each shell of wave numbers is exactly that of the spectrum.
    """
    D, longest = len(size), max(size)
    most = [int(CUTOFF * flow.peak * n / longest) for n in size]
    m = np.meshgrid(*(np.arange(-k, k + 1) for k in reversed(most)), indexing="ij")[::-1]
    k = np.stack([m_a * (longest / n) for m_a, n in zip(m, size, strict=True)])
    length = np.sqrt((k**2).sum(axis=0))
    a = _gaussian(flow.seed, k.shape)
    u = a + np.conj(np.flip(a, axis=tuple(range(1, D + 1))))
    u -= k * (k * u).sum(axis=0) / np.maximum(length, 1) ** 2
    shell = np.rint(length).astype(int)
    u[:, (shell == 0) | (length > CUTOFF * flow.peak)] = 0
    energy = np.bincount(shell.ravel(), (abs(u) ** 2).sum(axis=0).ravel() / 2)
    u *= np.sqrt(_shares(flow, energy))[shell]
    for axis, n in enumerate(size):  # to the cell centres along the rows
        if axis < D - 1:
            u *= np.exp(1j * np.pi * m[axis] / n)
    u = u[..., most[0] :]
    rows = np.arange(-most[1], most[1] + 1) if D == 3 else np.zeros(1, int)
    slow = np.arange(-most[-1], most[-1] + 1)
    return Waves(np.ascontiguousarray(u.reshape(D, slow.size, rows.size, -1)), slow, rows, size)


def _shares(flow: RandomFlow, energy: np.ndarray) -> np.ndarray:
    """The wanted energy of each shell divided by its `energy`; 0 for empty shells."""
    n = np.arange(energy.size)
    wanted = n**flow.slope * np.exp(-flow.slope / 2 * (n / flow.peak) ** 2) * (energy > 0)
    wanted *= flow.speed**2 / 2 / wanted.sum()
    return np.divide(wanted, energy, out=np.zeros_like(energy), where=energy > 0)


def _gaussian(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Complex Gaussian numbers from the raw numbers of a generator, by Box and Muller."""
    raw = np.random.Philox(seed).random_raw(2 * int(np.prod(shape))) >> np.uint64(11)
    one, two = ((raw + 0.5) * 2.0**-53).reshape(2, *shape)
    return np.sqrt(-2 * np.log(one)) * np.exp(2j * np.pi * two)

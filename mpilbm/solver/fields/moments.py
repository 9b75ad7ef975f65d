"""Moments of samples: means and sums of products of deviations, merged one after another.

[Chan, Golub & LeVeque 1983, Am. Stat. 37, 242]
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from mpilbm.physics.sampled import Sampled


class Moments(NamedTuple):
    """Number of values n (…, 1), means of rho and q (…, 1 + m), sums of d_a d_b (…, m (m + 1) / 2).

    q: the m components of u and scalars, see physics/sampled.py. d = q - mean; the pairs a, b are
    xx, xy, xz, yy, yz, zz.
    """

    n: np.ndarray
    mean: np.ndarray
    products: np.ndarray

    def fields(self, labels: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
        """The fields of `Sampled.fields`; not a number where there is no fluid.

        `labels`: those of the scalars.
        """
        sampled = Sampled(self.mean.shape[-1] - 1 - len(labels), labels)
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance, mean = self.products / self.n, np.where(self.n > 0, self.mean, np.nan)
        values, shapes = np.concatenate([mean, covariance], axis=-1), sampled.components
        return {
            name: values[..., numbers] if shapes[name] else values[..., numbers[0]]
            for name, numbers in sampled.fields.items()
        }


def merged(parts: Moments, axis: int, before: Moments | None = None) -> Moments:
    """Moments of `before` and of all values along an axis of the arrays, merged in order."""
    for k in range(parts.n.shape[axis]):
        part = Moments(*(np.take(each, k, axis) for each in parts))
        before = part if before is None else merge(before, part)
    if before is None:
        raise ValueError(f"no values along axis {axis}")
    return before


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of the values of a and b together."""
    n = a.n + b.n
    share = b.n / np.maximum(n, 1)
    d = b.mean - a.mean
    products = a.products + b.products + products_of(d[..., 1:]) * (a.n * share)
    return Moments(n, a.mean + d * share, products)


def products_of(u: np.ndarray) -> np.ndarray:
    """u_a u_b (…, D (D + 1) / 2) of u (…, D)."""
    pairs = combinations_with_replacement(range(u.shape[-1]), 2)
    return np.stack([u[..., a] * u[..., b] for a, b in pairs], axis=-1)


def shifted(sums: np.ndarray, by: np.ndarray, n: np.ndarray | float) -> np.ndarray:
    """The sums of n values d + by, from the sums of d (…, 1 + D + D (D + 1) / 2)."""
    D = by.shape[-1] - 1
    first, products = sums[..., : 1 + D], sums[..., 1 + D :]
    moved, u = first + n * by, first[..., 1:]
    cross = products_of(u + by[..., 1:]) - products_of(u) + (n - 1) * products_of(by[..., 1:])
    return np.concatenate([moved, products + cross], axis=-1)

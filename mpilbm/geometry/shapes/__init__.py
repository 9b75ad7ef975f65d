"""Solid shapes: what a [[body]] without a mask is made of."""

import numpy as np

from mpilbm.registry import Parameters
from mpilbm.units import counted

BISECTIONS = 52  # halvings of a step: to the rounding of its numbers


class Shape(Parameters):
    """A set of points; a cell is solid if its centre is in it.

    Lengths are in cells, the box reaches from 0 to nx, ny, nz, cell centres are 0.5, 1.5, …
    A shape does not wrap at a periodic face: what reaches beyond the box is cut off.
    """

    def inside(self, x, y, z=None):
        """Bool array: which of the points x, y, z (arrays that broadcast; z None in 2D) are in."""
        raise NotImplementedError

    def distance(self, points, step, size) -> np.ndarray:
        """How many steps, 0 to 1, from points outside lead into the shape; points + step are in.

        points, step: (D, n); what leaves a box of `size` cells comes in again on its other side. By
        bisection; of several surfaces between the two it finds one.
        """
        size = np.reshape(size, (-1, 1))
        outside, inside = np.zeros(points.shape[1]), np.ones(points.shape[1])
        for _ in range(BISECTIONS):
            middle = (outside + inside) / 2
            within = self.inside(*((points + middle * step) % size))
            inside = np.where(within, middle, inside)
            outside = np.where(within, outside, middle)
        return inside

    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Lower and upper corner (x, y[, z]) of a box that holds the shape; may be infinite."""
        raise NotImplementedError

    def around(self, half) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Lower and upper corner of the box `half` as long to either side of the centre."""
        lower = tuple(c - h for c, h in zip(self.centre, half, strict=True))
        return lower, tuple(c + h for c, h in zip(self.centre, half, strict=True))

    def problems(self, case) -> list[str]:
        """What is wrong with the parameters in this case, a line each."""
        return []

    def wrong_lengths(self, case, *keys: str) -> list[str]:
        """The vectors among the keys that have not one entry per dimension, a line each."""
        wanted = case.dimensions
        axes = ", ".join("xyz"[:wanted])
        return [
            f"{key} = {list(getattr(self, key))} has {counted(len(getattr(self, key)), 'entry')}; "
            f"give {wanted} ({axes}) in {wanted}D"
            for key in keys
            if len(getattr(self, key)) != wanted
        ]

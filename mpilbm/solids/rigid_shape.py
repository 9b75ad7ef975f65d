"""The surface of a shape as formulas in the frame of the body, for kernels of moving bodies."""

from dataclasses import dataclass
from math import hypot, inf, isfinite, pi, prod

import numpy as np

from mpilbm.solids import Floats

NONE = (inf, inf, inf)


@dataclass(frozen=True)
class RigidShape:
    """The points between pairs of planes and, if there is a radius, within it from the centre.

    The distance from the centre is measured along the `round_axes`: all axes of a sphere, those
    across the axis of a cylinder. Lengths are in cells, in the frame in which the shape is given.

    centre      (D,), the centre
    half        (D,), half of the distance between the planes across each axis; inf without planes
    radius      0 without a round part
    round_axes  the axes along which the radius is measured
    """

    centre: tuple[float, ...]
    half: tuple[float, ...] = NONE
    radius: float = 0.0
    round_axes: tuple[int, ...] = ()

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.centre)

    @property
    def middle(self) -> Floats:
        """The centre, (3,); z = 0 in 2D."""
        return np.append(self.centre, [0.0] * (3 - self.dimensions))

    @property
    def halves(self) -> tuple[float, ...]:
        """`half` along three axes; inf in 2D along z."""
        return (*self.half[: self.dimensions], *NONE[self.dimensions :])

    @property
    def endless(self) -> tuple[int, ...]:
        """The axes along which it is infinite."""
        return tuple(
            a
            for a in range(self.dimensions)
            if a not in self.round_axes and not isfinite(self.half[a])
        )

    @property
    def reach(self) -> float:
        """The largest distance of a point from the centre, across the `endless` axes."""
        return hypot(self.radius, *(h for h in self.halves if isfinite(h)))

    @property
    def thickness(self) -> float:
        """The least distance between two opposite sides."""
        sides = [h for h in self.halves if isfinite(h)]
        return 2 * min([*sides, *([self.radius] if self.radius else [])])

    def extent(self, rotation: Floats) -> Floats:
        """How far the turned shape extends from its centre along each axis, without endless parts.

        rotation: (3, 3) or (n, 3, 3); the result is (3,) or (n, 3).
        """
        finite = [a for a, h in enumerate(self.halves) if isfinite(h)]
        sides = np.abs(rotation[..., finite]) @ [self.halves[a] for a in finite]
        squares = (rotation[..., list(self.round_axes)] ** 2).sum(axis=-1)
        found: Floats = sides + self.radius * np.sqrt(squares)
        return found

    def volume(self, size: tuple[int, ...]) -> float:
        """The volume in a box of `size` cells; in 2D the area."""
        r, m = self.radius, len(self.round_axes)
        of_round = {0: 1.0, 2: pi * r**2, 3: 4 / 3 * pi * r**3}[m]
        sides = (h for a, h in enumerate(self.halves) if isfinite(h))
        return of_round * prod(2 * h for h in sides) * prod(size[a] for a in self.endless)

    def inertia(self, size: tuple[int, ...]) -> Floats:
        """The moments of inertia of a density 1 about the axes through the centre, (3,).

        Endless axes are left out: bodies turn about them only.
        """
        of_round = self.radius**2 / (len(self.round_axes) + 2)  # the mean of x^2 in disc and ball
        squares = np.array(
            [
                of_round if a in self.round_axes else h * h / 3 if isfinite(h) else 0.0
                for a, h in enumerate(self.halves)
            ]
        )
        return self.volume(size) * (squares.sum() - squares)

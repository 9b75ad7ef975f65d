"""The cells whose centres are in bodies that move, for outputs that show bodies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpilbm.physics.motions import Placement
from mpilbm.solids import Flags, Floats, Ints
from mpilbm.solids.moving_bodies import MovingBody


@dataclass(frozen=True, eq=False)
class PlacedBodies:
    """The moving bodies of a run at a time; steps may continue while an output uses them.

    bodies  those of the run: the solver knows the last places of free bodies
    places  the placement of each
    """

    bodies: tuple[MovingBody, ...]
    places: tuple[Placement, ...]

    @classmethod
    def at(cls, bodies: Sequence[MovingBody], t: float) -> "PlacedBodies":
        """The bodies after t steps, those of free bodies among the last ones of the run."""
        return cls(tuple(bodies), tuple(body.placement(t) for body in bodies))

    def added(self, solid: Flags, planes: Ints, rows: Ints, x: Ints) -> Flags:
        """Return `solid`, (planes, rows, x), with the cells whose centres are in a moving body.

        planes, rows, x: the numbers of the cells along the axes, slowest first.
        """
        return solid | self._covered(planes, rows, x) if self.bodies else solid

    def moved(self, k: int, points: Floats) -> Floats:
        """Where points (n, D) of the shape of body k, as the case gives it, are; of the image whose
        centre is in the box.
        """
        body, at, D = self.bodies[k], self.places[k], points.shape[1]
        offset = np.pad(points, ((0, 0), (0, 3 - D))) - at.origin
        periods = np.where(body.periods > 0, body.periods, np.inf)
        image = np.floor(at.of(body.middle) / periods) * body.periods
        return (at.point + offset @ at.rotation.T - image)[:, :D]

    def turned(self, k: int, vectors: Floats) -> Floats:
        """Vectors (n, D) in the frame of body k, turned as the body."""
        D = vectors.shape[1]
        return vectors @ self.places[k].rotation[:D, :D].T

    def holders(self, points: Floats) -> Ints:
        """The place of a body that contains a point (n, D) among these bodies, -1 without one."""
        found, D = np.full(len(points), -1), points.shape[1]
        for k, (body, placement) in enumerate(zip(self.bodies, self.places, strict=True)):
            r = np.zeros((len(points), 3))
            r[:, :D] = points - placement.of(body.middle)[:D]
            r -= body.periods * np.round(r / np.where(body.periods > 0, body.periods, 1))
            endless = np.isin(np.arange(3), body.shape.endless)
            near = np.flatnonzero(np.all(endless | (np.abs(r) <= body.shape.reach), axis=1))
            found[near[body.shape.distance(r[near] @ placement.rotation) <= 0]] = k
        return found

    def _covered(self, planes: Ints, rows: Ints, x: Ints) -> Flags:
        D = self.bodies[0].case.dimensions
        flat = D == 2
        places = [x + 0.5, (planes if flat else rows) + 0.5, np.zeros(1) if flat else planes + 0.5]
        found = np.zeros([len(each) for each in places[::-1]], bool)
        for body, placement in zip(self.bodies, self.places, strict=True):
            shape, offsets, near = body.shape, [], []
            for a, centre in enumerate(placement.of(body.middle)):
                r, n = places[a] - centre, body.periods[a]
                r = r - n * np.round(r / n) if n else r
                everywhere = a in shape.endless or a >= D
                near.append(np.flatnonzero(everywhere | (np.abs(r) <= shape.reach)))
                offsets.append(np.zeros(1) if a >= D else r[near[a]])
            r = np.stack(np.meshgrid(*offsets[::-1], indexing="ij")[::-1], axis=-1)
            found[np.ix_(*near[::-1])] |= shape.distance(r @ placement.rotation) <= 0
        return found.reshape(len(planes), len(rows), len(x))

"""The cells whose centres are in bodies that move, for outputs that show bodies."""

import numpy as np

from mpilbm.model.case import Case
from mpilbm.solids import Flags, Ints
from mpilbm.solids.moving_bodies import MovingBody


def covered(case: Case, t: float, planes: Ints, rows: Ints, x: Ints) -> Flags:
    """Whether the centres of cells are in a moving body after t steps, (planes, rows, x).

    Bodies that move freely are left out: their place at a step is known to the solver alone.
    planes, rows, x: the numbers of the cells along the axes, slowest first.
    """
    flat = case.dimensions == 2
    places = [x + 0.5, (planes if flat else rows) + 0.5, np.zeros(1) if flat else planes + 0.5]
    found = np.zeros([len(each) for each in places[::-1]], bool)
    for body in (each for each in MovingBody.all(case) if not each.motion.responds):
        placement, shape = body.placement(t), body.shape
        offsets, near = [], []
        for a, centre in enumerate(placement.of(body.middle)):
            r, n = places[a] - centre, body.periods[a]
            r = r - n * np.round(r / n) if n else r
            everywhere = a in shape.endless or a >= case.dimensions
            near.append(np.flatnonzero(everywhere | (np.abs(r) <= shape.reach)))
            offsets.append(np.zeros(1) if a >= case.dimensions else r[near[a]])
        r = np.stack(np.meshgrid(*offsets[::-1], indexing="ij")[::-1], axis=-1)
        found[np.ix_(*near[::-1])] |= shape.distance(r @ placement.rotation) <= 0
    return found.reshape(len(planes), len(rows), len(x))

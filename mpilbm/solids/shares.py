"""The solid share of each cell, for bodies whose boundary acts in cells instead of on links."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.case import Case
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import Flags
from mpilbm.solids.masks import load_mask
from mpilbm.solids.solid_cells import centres_around

WHOLE = 255  # the stored share of a cell that is solid as a whole
POINTS = 2**15  # cells whose shares are computed together

Part = tuple[tuple[slice, ...], NDArray[np.float32]]  # part of an array of cells, and shares there


@dataclass(frozen=True, eq=False)
class Shares:
    """The solid shares of the cells of a slab.

    share  uint8 (planes, rows, nx), the share times WHOLE
    body   uint8 or uint16 (planes, rows, nx), 1 + the number of the body with the largest share,
           the last of several; 0 where the share is 0
    """

    share: NDArray[np.uint8]
    body: NDArray[Any]

    @classmethod
    def find(cls, case: Case, slab: Slab, solid: NDArray[Any]) -> "Shares":
        """The shares of all bodies whose boundary acts in cells.

        solid: (planes, rows, nx), the bodies of the cells, see Geometry. Shares of several bodies
        are added, at most to 1. Cells of other bodies have the share 0.
        """
        total = np.zeros(solid.shape, np.float32)
        largest, body = np.zeros_like(total), np.zeros_like(solid)
        others: list[int] = []
        for k, each in enumerate(case.bodies):
            if not each.boundary.capabilities.in_cells:
                others.append(k + 1)
                continue
            for where, share in _parts(case, k, slab):
                total[where] += share
                more = (share > 0) & (share >= largest[where])
                np.copyto(body[where], k + 1, where=more)
                np.copyto(largest[where], share, where=more)
        of_others = np.zeros(1 + len(case.bodies), bool)
        of_others[others] = True
        total[of_others[solid]] = 0
        np.rint(np.minimum(total, 1, out=total) * np.float32(WHOLE), out=largest)
        stored = largest.astype(np.uint8)
        body[stored == 0] = 0
        return cls(stored, body)

    def cells_of(self, bodies: Sequence[int]) -> Flags:
        """The cells of some bodies, (planes, rows, nx)."""
        return np.isin(self.body, np.add(bodies, 1))


def _parts(case: Case, number: int, slab: Slab) -> Iterator[Part]:
    """The shares of a body in parts of a slab; those of its images are added."""
    body, begin, end = case.bodies[number], slab.begin, slab.end
    if body.shape is None:
        assert body.mask is not None  # a body has a shape or a mask
        solid = load_mask(body.mask, case, begin, end, f"body.{number}.mask")
        yield (slice(None),), solid.astype(np.float32)
        return
    for image in body.shape.in_box(case.domain).images:
        for where, size, points in centres_around(image, case, begin, end):
            at = np.stack([np.broadcast_to(x, size).reshape(-1) for x in points])
            share = np.empty(size, np.float32)
            for begin_at in range(0, share.size, POINTS):
                block = slice(begin_at, begin_at + POINTS)
                share.reshape(-1)[block] = image.share(at[:, block])
            yield where, share

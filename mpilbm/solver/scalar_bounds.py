"""The bounds of scalars that obey the maximum principle.

Advection and diffusion keep a scalar between the least and the largest of its initial values and of
the values that its conditions hold (ScalarBoundary.held), if it has no source, no condition
supplies it without a limit, and no given value changes with time. Other scalars have no bounds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.model import Case, Scalar
from mpilbm.core.formulas.trees import numeric
from mpilbm.core.formulas.values import AXES
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.solids.entry_list import EntryList
from mpilbm.solver.context import SlabContext

Range = tuple[float, float]
ROUNDED = 16  # rounding errors of a value that are allowed beyond the bounds
FROM_FILES = float(np.finfo("float32").eps)  # initial values may have so few digits
AT_ONCE = 1 << 16  # entries whose given values are computed at the same time
SHIFTS = (-1.0, 0.0, 1.0)  # from a cell to its walls, at most, along each axis


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value of a scalar; `rounding`: the largest error beyond them."""

    low: float
    high: float
    rounding: float = 0.0

    @property
    def attributes(self) -> dict[str, float]:
        """What a checkpoint keeps of them."""
        return {"low": self.low, "high": self.high}

    @property
    def middle(self) -> float:
        """The value half-way between them."""
        return self.low + (self.high - self.low) / 2

    @property
    def scale(self) -> float:
        """Their difference or, if they are equal but for rounding, their magnitude."""
        apart, size = self.high - self.low, max(abs(self.low), abs(self.high))
        return apart if apart > max(self.rounding, ROUNDED * FROM_FILES * size) else size

    def beyond(self, farthest: float) -> float:
        """How far values are beyond the bounds, relative to `scale`, at least 0.

        `farthest`: their largest distance from `middle`.
        """
        excess = farthest - (self.high - self.low) / 2 - self.rounding
        return max(0.0, excess / self.scale) if self.scale else 0.0


def carrying(scalar: Scalar, solid: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells carry a scalar: fluid, and bodies that conduct it; solid: see Geometry."""
    bodies = [k + 1 for k, each in enumerate(scalar.bodies) if each.conducts]
    return np.isin(solid, [0, *bodies])


def own_bounds(
    context: SlabContext, ranges: Mapping[str, tuple[float, float]]
) -> dict[str, Range | None]:
    """The least and largest value of each scalar on a slab, by label; None if it has no bounds.

    `ranges`: those of its initial values; nan if not known. Without any value: (inf, -inf).
    """
    case, found = context.case, dict[str, Range | None]()
    for scalar, lists in zip(case.scalars, context.geometry.of_scalars, strict=True):
        held = list(_held(context, lists))
        if scalar.source != 0 or any(values is None for values in held):
            found[scalar.label] = None
            continue
        values = np.concatenate([ranges.get(scalar.label, ()), *held])
        found[scalar.label] = float(values.min(initial=inf)), float(values.max(initial=-inf))
    return found


def of_box(case: Case, parts: Sequence[Mapping[str, Range | None]]) -> dict[str, Bounds]:
    """The bounds of scalars, by label, from the results of `own_bounds` on all slabs."""
    found = {}
    for label in case.labels:
        ranges = [part[label] for part in parts]
        known = [each for each in ranges if each is not None and not np.isnan(each).any()]
        if len(known) < len(ranges):
            continue
        low, high = min(each[0] for each in known), max(each[1] for each in known)
        error = ROUNDED * float(np.finfo(case.precision.storage).eps) * max(abs(low), abs(high))
        found[label] = Bounds(low, high, error)
    return found


def _held(context: SlabContext, lists: Iterable[EntryList]) -> Iterator[NDArray[Any] | None]:
    """The values that each condition of a scalar holds at its entries on the slab."""
    size, D = context.case.domain.size, context.case.dimensions
    for entries in lists:
        rows = entries.rows(size, 0.0)
        for number, boundary in enumerate(entries.boundaries):
            assert isinstance(boundary, ScalarBoundary)
            given = boundary.given(D)
            mine = np.flatnonzero(entries.member == number)
            if any(value.timed for value in given):
                yield None
                continue
            for begin in range(0, mine.size, AT_ONCE):
                part = mine[begin : begin + AT_ONCE]
                of_mine = rows[part] if entries.given.vary else rows[[number]]
                local = any(value.coordinates for value in given)
                places = _places(context, entries.cells[part]) if local else {}
                numbers = dict(zip((n for v in given for n in v.numbers), of_mine.T, strict=False))
                known = numbers | places
                at = [
                    numeric(v.tree, known).ravel() if v.coordinates else known[v.name]
                    for v in given
                ]
                yield boundary.held(dict(zip(boundary.values(), at, strict=True)))


def _places(context: SlabContext, cells: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Coordinates around the centres of these cells, by axis: (3^D, n)."""
    slab, D = context.slab, context.case.dimensions
    plane, row, x = np.unravel_index(cells, (slab.planes, *slab.shape[1:]))
    centres = [x, row, plane + slab.begin] if D == 3 else [x, plane + slab.begin]
    shifts = np.array(list(product(SHIFTS, repeat=D))).T[..., None]
    return dict(
        zip(AXES, (c + 0.5 + s for c, s in zip(centres, shifts, strict=True)), strict=False)
    )

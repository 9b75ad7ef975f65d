"""Checks of a run that report findings, besides those that end it (outputs/core/totals.py).

Imports the layers below the run. Add a module for a symptom of an inaccurate or unstable run.
This module names cells at the faces of the box, and reports numbers that may grow.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.case import Case
from mpilbm.case.case_findings import is_closed, leaking, remedy
from mpilbm.model.findings import SERIOUS, WARNING, Finding
from mpilbm.outputs import Context
from mpilbm.parallel.slabs import Slab

RAISE, OTHER = "raise the viscosity", "use another collision"  # advice
SAFEST = "equilibrium"  # the condition at faces that was stable in the most flows
SAFE_WALL = "wall_model"  # the wall along which no wave grows where the fluid moves with it
Nodes = NDArray[np.int64]  # (n, 3): plane, row and x in the box


def spread(n: int, most: int) -> NDArray[np.int64]:
    """At most so many evenly spaced numbers of 0 … n - 1, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def box_nodes(case: Case, most: int) -> Nodes:
    """Evenly spaced nodes of the box, at most so many along each side."""
    return _nodes([spread(n, most) for n in case.domain.size])


def face_nodes(case: Case, face: str, most: int) -> Nodes:
    """Evenly spaced nodes of the cells at a face, at most so many along each side."""
    axis, size = "xyz".index(face[0]), case.domain.size
    sides = [spread(n, most) for n in size]
    sides[axis] = np.array([0 if face[1] == "-" else size[axis] - 1])
    return _nodes(sides)


def closed_faces(case: Case) -> Iterator[str]:
    """All faces that are not periodic."""
    for axis, periodic in zip("xyz", case.domain.periodic, strict=False):
        yield from () if periodic else (f"{axis}-", f"{axis}+")


def on_slab(nodes: Nodes, slab: Slab) -> Nodes:
    """The nodes that are on a slab."""
    return nodes[(nodes[:, 0] >= slab.begin) & (nodes[:, 0] < slab.end)]


def _nodes(sides: Sequence[NDArray[np.int64]]) -> Nodes:
    """All nodes with these coordinates along x, y and z, sorted."""
    cells = np.array(list(product(*sides)), np.int64)
    x, *rest = cells.T
    row, plane = rest if len(sides) == 3 else (np.zeros_like(x), rest[0])
    return np.unique(np.stack([plane, row, x], axis=1), axis=0)


class Place(NamedTuple):
    """A cell for a finding.

    text  the cell, with the faces at which it is and their boundaries
    key   that of the first of these boundaries; "" inside of the box
    fix   other conditions at these faces, as advice; "" inside of the box
    """

    text: str
    key: str
    fix: str


def place(case: Case, node: Sequence[int]) -> Place:
    """The place of a node (plane, row, x)."""
    plane, row, x = node
    cell = (x, plane) if case.dimensions == 2 else (x, row, plane)
    text = f"cell ({', '.join(map(str, cell))})"
    sides = zip("xyz", cell, case.domain.size, strict=False)
    at = [f"{a}{s}" for a, k, n in sides for s, end in (("-", 0), ("+", n - 1)) if k == end]
    faces = [face for face in closed_faces(case) if face in at]
    here = {
        f"boundary.{k}": each
        for face in faces
        for k, each in enumerate(case.boundaries)
        if face in each.where
    }
    if not here:
        return Place(text, "", "")
    names = dict.fromkeys(each.name for each in here.values())
    text += f" at {' and '.join(faces)} ({' and '.join(map(repr, names))})"
    passed = any(each.face_flow.crosses for each in here.values())
    safe = SAFEST if passed else SAFE_WALL
    other = "" if safe in names else f", such as '{safe}'"
    return Place(text, next(iter(here)), f"give these faces other conditions{other}")


class Alarm:
    """Reports a finding when a number passes each of some levels, in place of the last one."""

    def __init__(self, context: Context, levels: Sequence[float]):
        self._context, self._levels = context, levels
        self._passed = 0
        self._last: Finding | None = None

    def update(self, number: float, describe: Callable[[], Finding]) -> None:
        """The number, the same on all ranks; `describe()` is called on all ranks at a new level."""
        passed = sum(number > level for level in self._levels)
        if passed > self._passed:
            found = describe()
            self._context.report(found, instead=self._last)
            self._passed, self._last = passed, found


class Repeated:
    """Whether a condition holds repeatedly: at checks that are at least `every` steps apart.

    `first`: the step at which it held first, None before it. One start-up or one sound wave
    does not repeat; sound that stays in the box does.
    """

    def __init__(self, every: int):
        self._every = every
        self.first: int | None = None

    def update(self, step: int, holds: bool) -> bool:
        """Whether it holds at this step, and held at an earlier check."""
        if holds and self.first is None:
            self.first = step
        return holds and self.first is not None and step - self.first >= self._every


# Relative changes of the mass that are reported, and from which the finding is serious.
CLOSED = 1e-3, 1e-2, 0.1, 1.0
OPEN = 0.1, 1.0, 10.0
WRONG = {True: CLOSED[1], False: OPEN[1]}


class MassCheck:
    """Compares the mass with that at the first check, and reports a finding if it has changed."""

    def __init__(self, context: Context):
        self._context, self._case = context, context.case
        self._closed = is_closed(self._case)
        held = any(getattr(each, "rho", None) is not None for each in self._case.boundaries)
        self._applies = self._closed or not held
        self._alarm = Alarm(context, CLOSED if self._closed else OPEN)
        self.forget()

    def forget(self) -> None:
        """Compare with the mass at the next check, because the state was replaced."""
        self._first: tuple[int, float] | None = None

    def check(self, step: int) -> None:
        """Compare the mass at this step; collective."""
        if not self._applies:
            return
        parts = self._context.comm.allgather(self._context.solver.mass())
        mass = float(np.cumsum(np.concatenate(parts))[-1])
        begin, before = self._first = self._first or (step, mass)
        change = mass / before - 1 if before else 0.0
        self._alarm.update(abs(change), lambda: self._finding(step, change, begin))

    def _finding(self, step: int, change: float, begin: int) -> Finding:
        names = ", ".join(dict.fromkeys(f"'{b.name}'" for b in leaking(self._case).values()))
        flow, cause = "flow", "no face gives the density"
        fix = "give one of the faces rho, or use characteristic with rho as outlet"
        if self._closed:
            flow, cause = "closed flow", "no boundary of the case explains this"
            stored = self._case.precision.storage
            fix = "use a finer box" if stored == "float64" else 'use precision.storage = "float64"'
            if names:
                cause, fix = f"{names} does not conserve it", f"set {remedy(self._case)}"
        sentence = (
            f"by step {step} the mass of the {flow} has changed by {change:+.2g} of its value "
            f"at step {begin}: {cause}; {fix}"
        )
        level = SERIOUS if abs(change) >= WRONG[self._closed] else WARNING
        return Finding(level, "", sentence)

"""Proposes the side of a cell and the duration of a step for a case with [units].

Box, speed and viscosity are those of the case in SI. The proposal is the coarsest refinement of the
cells of the case for which

    Ma = u / cs <= 0.1,   tau <= 1,   and u / nu is stable in similar flows (model/limits.py),

with the longest step that satisfies the first two: u = min(0.1 cs, cs2 u_SI cell / (2 nu_SI))
cells per step. Another measured collision is proposed, too, if it needs fewer cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, log10, prod, sqrt

import numpy as np

from mpilbm.case.model import Case
from mpilbm.core.units import TIME, VELOCITY, VISCOSITY, Units, in_words, mach
from mpilbm.model.collision_label import parts_of
from mpilbm.model.limits import measured_on, stability
from mpilbm.run.preflight.expected_speed import bandwidth
from mpilbm.run.preflight.inspection import is_usable, with_collision
from mpilbm.run.preflight.report import Line
from mpilbm.solids import plane_costs
from mpilbm.solver.memory_plan import bytes_needed

MACH, TAU = 0.1, 1.0
ROUNDING = 1e-6  # of a Mach number that a case gives as exactly MACH
REFINEMENTS = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)


@dataclass(frozen=True)
class Proposal:
    """Units of the lattice, the cells along each axis, and the steps of the run."""

    units: Units
    size: tuple[int, ...]
    steps: int


def proposal_lines(
    case: Case, units: Units, speed: float, ranks: int, gpu_memory: float | None
) -> list[Line]:
    """Proposed cell and step with memory and time; `speed`: the largest one in lattice units."""
    if not case.single_fluid:
        return [Line("none", "", "for one fluid only: coupled fluids have more numbers to keep")]
    if not speed:
        text = "the case gives no speed; give initial.u or the velocity of a boundary"
        return [Line("none", "", text)]
    case, found, label = _coarsest(case, units, speed)
    lines = [Line("collision", _table(label), "needs the fewest cells")] if label else []
    if found is None:
        return [Line("none", "", _why_none(case, units, speed), "fair")]
    if found.units == units:
        lines.append(Line("cell, step", "as given", f"Mach <= {MACH:g} and stable", "good"))
    else:
        size = ", ".join(map(str, found.size))
        lines += [
            Line("cell", f'"{found.units.cell:.6g} m"', f"{size} cells, for the same box"),
            Line("step", f'"{found.units.step:.6g} s"', f"Mach <= {MACH:g} and stable"),
        ]
    return [*lines, *_costs(case, found, ranks, gpu_memory)]


def present(case: Case, units: Units, speed: float) -> Proposal | None:
    """The units of the case, if they are acceptable."""
    slow = mach(speed, case.lattice.cs2) <= MACH * (1 + ROUNDING)
    good = slow and is_stable(case, case.fluids[0].viscosity, speed)
    return Proposal(units, case.domain.size, case.run.steps) if good else None


def propose(case: Case, units: Units, speed: float) -> Proposal | None:
    """The coarsest acceptable refinement; None if there is none."""
    for finer, size, nu, u in _finer(case, units, speed):
        if is_stable(case, nu, u):
            steps = ceil(units.to_si(case.run.steps, TIME) / finer.step)
            return Proposal(finer, size, steps)
    return None


def _coarsest(case: Case, units: Units, speed: float) -> tuple[Case, Proposal | None, str]:
    """The case with the collision that needs the fewest cells, the proposal, and its label.

    The label is "" for the collision of the case; others are taken only if they need fewer cells,
    first those without a closure, then those of the same name.
    """
    fluid, lattice = case.fluids[0], case.lattice.name

    def order(label: str) -> tuple[bool, bool]:
        name, _, closure = parts_of(label)
        return bool(closure), name != fluid.collision.name

    best = case, present(case, units, speed) or propose(case, units, speed), ""
    for label in sorted(measured_on(lattice), key=order):
        if best[1] is not None and best[1].size == case.domain.size:
            break
        if is_usable(case, fluid, lattice, label):
            other = case.model_copy(update={"fluids": (with_collision(fluid, label),)})
            found = present(other, units, speed) or propose(other, units, speed)
            if found and (best[1] is None or found.size < best[1].size):
                best = other, found, label
    return best


def _table(label: str) -> str:
    """The table of a collision in a case file."""
    name, parameters, closure = parts_of(label)
    keys = [f'name = "{name}"', *(f"{key} = {value:g}" for key, value in parameters.items())]
    keys += [f'closure = {{name = "{closure}"}}'] if closure else []
    return f"{{{', '.join(keys)}}}"


def _why_none(case: Case, units: Units, speed: float) -> str:
    """That no refinement is acceptable, with the verdict and the advice of the finest one."""
    finest, _, nu, u = list(_finer(case, units, speed))[-1]
    fluid = case.fluids[0]
    finer = fluid.model_copy(update={"viscosity": nu})
    verdict, _ = stability(case, finer, u, partial(is_usable, case, fluid))
    return f"no cell from {finest.cell:.3g} m on is stable; there {verdict}"


def _finer(
    case: Case, units: Units, speed: float
) -> Iterator[tuple[Units, tuple[int, ...], float, float]]:
    """Units of refinements, the sizes of the box, and viscosity and speed in these units."""
    fastest, nu = units.to_si(speed, VELOCITY), units.to_si(case.fluids[0].viscosity, VISCOSITY)
    cs2 = float(case.lattice.cs2)
    for cell, size in _refinements(case, units):
        u = min(MACH * sqrt(cs2), cs2 * (TAU - 0.5) * fastest * cell / nu)
        finer = Units(cell, _rounded_down(u * cell / fastest), units.density)
        yield finer, size, finer.to_lattice(nu, VISCOSITY), finer.to_lattice(fastest, VELOCITY)


def _refinements(case: Case, units: Units) -> Iterator[tuple[float, tuple[int, ...]]]:
    """The sides of smaller cells in m, and the sizes of the box, which the lattice accepts."""
    shortest = min(case.domain.size)
    for factor in REFINEMENTS:
        least = ceil(shortest * factor)
        for count in (least, least + 1):  # one of them is even
            cell = units.cell * shortest / count
            size = tuple(round(n * units.cell / cell) for n in case.domain.size)
            domain = case.domain.model_copy(update={"size": size})
            if not case.lattice.problems(case.model_copy(update={"domain": domain})):
                yield cell, size
                break


def _rounded_down(number: float) -> float:
    """A positive number with three digits."""
    unit = 10.0 ** (floor(log10(number)) - 2)
    return floor(number / unit) * unit


def is_stable(case: Case, viscosity: float, speed: float) -> bool:
    """Whether a flow of this viscosity and speed, in lattice units, is stable."""
    fluid = case.fluids[0].model_copy(update={"viscosity": viscosity})
    return stability(case, fluid, speed)[1] == "good"


def _costs(case: Case, found: Proposal, ranks: int, gpu_memory: float | None) -> list[Line]:
    """Memory of a rank, and the time of the run."""
    domain = case.domain.model_copy(update={"size": found.size})
    finer = case.model_copy(update={"domain": domain})
    if finer.shape[0] < ranks:
        return []
    largest = max(plane_costs.slabs(finer, ranks), key=lambda slab: slab.planes)
    memory = in_words(sum(bytes_needed(finer, largest).values()))
    lines = [Line("memory", memory, "per rank, without the lists of boundaries")]
    if gpu_memory is not None:
        return [*lines, Line("steps", f"{found.steps:,}")]
    formats = case.formats
    traffic = 2 * len(formats.names) * np.dtype(formats.widest).itemsize * prod(finer.shape)
    copy = bandwidth(case.backend)
    if copy is None:
        return [*lines, Line("steps", f"{found.steps:,}")]
    seconds = found.steps * traffic / copy / ranks
    least = "about" if case.bodies else "at least"  # solid cells may need no traffic
    note = f"{found.steps:,} steps; {least}: memory traffic at {copy / 1e9:.3g} GB/s per rank"
    return [*lines, Line("run time", duration(seconds), note)]


def duration(seconds: float) -> str:
    """A time in s, min, h or days, with two digits."""
    for limit, scale, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / scale:.2g} {name}"
    return f"{seconds / 86400:.3g} days"

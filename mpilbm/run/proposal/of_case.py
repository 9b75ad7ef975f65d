"""Proposes the side of a cell and the duration of a step for a case with [units].

Box, speed and viscosity are those of the case in SI. The proposal is the coarsest refinement of the
cells of the case for which

    Ma = u / cs <= 0.1,   tau <= 1,   and u / nu is stable in similar flows (model/limits.py),

with the longest step that satisfies the first two: u = min(0.1 cs, cs2 u_SI cell / (2 nu_SI))
cells per step. Another measured collision is proposed, too, if it needs fewer cells, and another
lattice if no cells are stable on that of the case. If nothing is, the lines say what to change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from mpilbm.case.model import Case
from mpilbm.core.registry import make
from mpilbm.core.units import TIME, VELOCITY, VISCOSITY, Units, mach, reynolds
from mpilbm.model.collision_label import label_of, parts_of
from mpilbm.model.flow_kinds import flows
from mpilbm.model.limits import MARGIN, limit, measured, measured_on, similar_flows, stability
from mpilbm.run.preflight.inspection import is_usable, with_collision
from mpilbm.run.preflight.report import Line
from mpilbm.run.proposal.accuracy import accuracy_line, wall_line
from mpilbm.run.proposal.costs import gpu_lines, rank_lines
from mpilbm.run.proposal.resolution import resolution
from mpilbm.run.proposal.scheme import MACH, collision, longest_step

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
    """Proposed cell and step with walls, memory, time and accuracy.

    `speed`: the largest one in lattice units.
    """
    if not case.single_fluid:
        return [Line("none", "", "for one fluid only: coupled fluids have more numbers to keep")]
    if not speed:
        text = "the case gives no speed; give initial.u or the velocity of a boundary"
        return [Line("none", "", text)]
    given = case
    case, found, label = _coarsest(case, units, speed)
    lines = []
    if case.lattice.name != given.lattice.name:
        why = f"no cells are stable on {given.lattice.name}"
        lines.append(Line("lattice", f'"{case.lattice.name}"', why))
    lines += [Line("collision", _table(label), "needs the fewest cells")] if label else []
    if found is None:
        return [
            Line("none", "", _why_none(case, units, speed), "fair"),
            _change(case, units, speed),
        ]
    if found.units == units:
        lines.append(Line("cell, step", "as given", f"Mach <= {MACH:g} and stable", "good"))
    else:
        size = ", ".join(map(str, found.size))
        lines += [
            Line("cell", f'"{found.units.cell:.6g} m"', f"{size} cells, for the same box"),
            Line("step", f'"{found.units.step:.6g} s"', f"Mach <= {MACH:g} and stable"),
        ]
    flow = resolution(given, speed, units.cell / found.units.cell)
    if flow is not None:
        lines += [wall_line(flow), accuracy_line(flow)]
    domain = case.domain.model_copy(update={"size": found.size})
    finer = case.model_copy(update={"domain": domain})
    if gpu_memory is None:
        return [*lines, *rank_lines(finer, found.steps, ranks)]
    return [*lines, *gpu_lines(finer, found.steps, gpu_memory)]


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

    The label is "" for the collision of the case. Others are taken only if they need fewer cells:
    first that of scheme, then those without a closure, then those of the same name. Those of
    another lattice are tried only if that of the case needs cells of less than half the length.
    """
    best = case, present(case, units, speed) or propose(case, units, speed), ""
    for lattice in _lattices(case):
        if best[1] and lattice != case.lattice.name and not _much_finer(case, best[1]):
            break
        for label, other in [*_by_rule(case, speed, lattice), *_others(case, lattice)]:
            if best[1] is not None and best[1].size == case.domain.size:
                break
            found = present(other, units, speed) or propose(other, units, speed)
            if found and (best[1] is None or found.size < best[1].size):
                best = other, found, label
    return best


def _much_finer(case: Case, found: Proposal) -> bool:
    """Whether the proposed cells are less than half as long as those of the case."""
    return found.size[0] > 2 * case.domain.size[0]


def _lattices(case: Case) -> list[str]:
    """The measured lattices of the dimension of the case, its own first."""
    own = case.lattice.name
    return [own, *(name for name in measured() if name != own and name[:2] == own[:2])]


def _by_rule(case: Case, speed: float, lattice: str) -> Iterator[tuple[str, Case]]:
    """The collision that scheme proposes for a stream in 3D, if the case accepts it."""
    flow = resolution(case, speed)
    if flow is None:
        return
    table = collision(flow)
    closure = table.pop("closure", {"name": ""})["name"]
    label = label_of(table.pop("name"), table, closure)
    if is_usable(case, case.fluids[0], lattice, label):
        yield label, _with(case, lattice, label)


def _with(case: Case, lattice: str, label: str) -> Case:
    """The case with another lattice and collision."""
    fluids = (with_collision(case.fluids[0], label),)
    return case.model_copy(update={"lattice": make("lattices", lattice), "fluids": fluids})


def _others(case: Case, lattice: str) -> Iterator[tuple[str, Case]]:
    """The measured collisions on a lattice that the case accepts: label, and case with it."""
    fluid = case.fluids[0]

    def order(label: str) -> tuple[bool, bool]:
        name, _, closure = parts_of(label)
        return bool(closure), name != fluid.collision.name

    for label in sorted(measured_on(lattice), key=order):
        if is_usable(case, fluid, lattice, label):
            yield label, _with(case, lattice, label)


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


def _change(case: Case, units: Units, speed: float) -> Line:
    """What to change in a case without a stable proposal: the cells or the speed.

    u/nu of a flow in cells of a given size does not depend on the step; the largest stable one of
    all collisions that the case accepts, at Mach numbers up to MACH, gives both.
    """
    stable = [
        (bound[0], number, label, lattice)
        for lattice in _lattices(case)
        for label, _ in _others(case, lattice)
        for number in measured()[lattice]["mach"]
        if number <= 1.1 * MACH
        and (bound := _least_limit(case, lattice, label, number)) is not None
    ]
    if not stable:
        return Line(
            "change", "", "no collision that this case accepts was measured; see `choosing`"
        )
    most, number, label, lattice = max(stable, key=lambda each: each[:2])
    grid = reynolds(case.fluids[0].viscosity, 1, speed) / (MARGIN * most)
    size = " x ".join(f"{ceil(n * grid):,}" for n in case.domain.size)
    slower = units.to_si(speed, VELOCITY) / grid
    text = (
        f"{size} cells, for the same box, with {label} on {lattice} at Mach {number:.2g}; or keep "
        f"the cells and lower the speed to {slower:.3g} m/s or raise the viscosity {grid:.3g} times"
    )
    return Line("change", f'cell = "{units.cell / grid:.3g} m"', text)


def _least_limit(
    case: Case, lattice: str, label: str, number: float
) -> tuple[float, float | None] | None:
    """The lowest limit of u/nu in the similar flows; None if no such flow was measured."""
    found = [
        known
        for flow in similar_flows(lattice, label, flows(case))
        if (known := limit(lattice, label, flow, number)) is not None
    ]
    return min(found, key=lambda each: each[0], default=None)


def _finer(
    case: Case, units: Units, speed: float
) -> Iterator[tuple[Units, tuple[int, ...], float, float]]:
    """Units of refinements, the sizes of the box, and viscosity and speed in these units."""
    fastest, nu = units.to_si(speed, VELOCITY), units.to_si(case.fluids[0].viscosity, VISCOSITY)
    cs2 = float(case.lattice.cs2)
    for cell, size in _refinements(case, units):
        finer = Units(cell, longest_step(cell, fastest, nu, cs2), units.density)
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


def is_stable(case: Case, viscosity: float, speed: float) -> bool:
    """Whether a flow of this viscosity and speed, in lattice units, is stable."""
    fluid = case.fluids[0].model_copy(update={"viscosity": viscosity})
    return stability(case, fluid, speed)[1] == "good"

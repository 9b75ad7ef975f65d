"""Collects all findings of a case, which `check` and `run` report.

A check is a function in the CHECKS of one of three modules: case_findings (numbers and formulas),
geometry_findings (solids and links), or this one (both, and initial fields).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, log10, sqrt

import numpy as np

from mpilbm.case import case_findings
from mpilbm.case.checks import given_speeds, problems_with
from mpilbm.case.model import Case, Fluid
from mpilbm.case.velocity_bounds import InitialRange, largest_speed
from mpilbm.core.registry import make
from mpilbm.core.units import mach, reynolds
from mpilbm.model.collision_label import parts_of
from mpilbm.model.findings import SERIOUS, WARNING, Finding, in_order
from mpilbm.model.limits import FAST, SEVERITY, least_viscosity, of_fluid
from mpilbm.outputs.core.averages import LEAST
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.run.preflight import driven_flow, inclined_walls
from mpilbm.solids import geometry_findings
from mpilbm.solids.shapes import Flow
from mpilbm.solids.surfaces.findings import VISCOUS

# relative differences of the density: noticeable compressibility, and a wrong flow
COMPRESSED, STRONGLY = 0.1, 0.5
DENSER = 0.01  # relative rise of the density by a sponge, as the compressibility error at Mach 0.1
TURBULENT = 4000  # Reynolds number of a pipe above which its flow is turbulent
TARGET = 0.1  # a Mach number with errors of one percent
# The largest velocity of a profile is 1.5 times (channel) to 2.25 times (duct) its mean, and a
# Reynolds number may use either of them.
RATIO = 2.5


@dataclass(frozen=True)
class Inspected:
    """The input of a check: the case, the parts that diagnose.find returned, the initial fields.

    `initial` has a range for each fluid; it is empty if a checkpoint replaces the initial fields.
    """

    case: Case
    parts: list
    initial: tuple[InitialRange, ...]

    @cached_property
    def pushes(self) -> list[tuple[driven_flow.Push, float]]:
        """The accelerations of the flow, each with the estimated speed."""
        return [
            (push, driven_flow.speed(self.case, push, self.radius))
            for push in driven_flow.pushes(self.case)
        ]

    @cached_property
    def radius(self) -> float:
        """The hydraulic radius: fluid volume over wall area."""
        links = sum(part.wall_links for part in self.parts)
        across = sum(c[0] > 0 for c in self.case.lattice.c)  # links of a cell across a plane wall
        return sum(part.fluid for part in self.parts) * across / links if links else inf

    @cached_property
    def given(self) -> tuple[float, str]:
        """The largest speed given in the case, and its key."""
        return largest_speed(self.case, self.initial)

    @cached_property
    def speed(self) -> float:
        """The largest given speed or, if none is given, the estimate for forces and pressures.

        0 if this estimate is above the speed of sound, which driven_speeds reports.
        """
        estimate = max((speed for _, speed in self.pushes), default=0.0)
        return self.given[0] or (estimate if estimate < sqrt(self.case.lattice.cs2) else 0.0)

    @property
    def axis(self) -> int | None:
        """The axis of the flow: across an inlet, along the strongest force or the initial flow."""
        for boundary in self.case.boundaries:
            if boundary.face_flow is FaceFlow.GIVEN and any(
                getattr(boundary, "velocity", None) or ()
            ):
                return "xyz".index(boundary.where[0][0])
        if self.pushes:
            return max(self.pushes, key=lambda each: each[0].largest)[0].axis
        u = [abs(n) if isinstance(n, float | int) else 0 for n in self.case.fluids[0].initial.u]
        return int(np.argmax(u)) if any(u) else None


@np.errstate(over="ignore", invalid="ignore")  # infinite estimates are reported like others
def inspect(case: Case, parts: list, initial: tuple[InitialRange, ...] = ()) -> list[Finding]:
    """All findings of a case, the most serious first; see Inspected."""
    seen = Inspected(case, parts, initial)
    found = [finding for check in CHECKS for finding in check(seen)]
    found += case_findings.of_case(case)
    inclined, curved = sum(part.inclined for part in parts), sum(part.curved for part in parts)
    found += inclined_walls.findings(case, inclined, curved)
    return in_order(found + geometry_findings.findings(case, parts))


def driven_speeds(seen: Inspected) -> Iterator[Finding]:
    """Forces and pressure differences that accelerate the flow too much."""
    case, cs = seen.case, sqrt(seen.case.lattice.cs2)
    for push, speed in seen.pushes:
        number = mach(speed, case.lattice.cs2)
        if number > FAST:
            text = (
                f"accelerates the flow along {'xyz'[push.axis]} to about {speed:.3g} cells/step "
                f"in {case.run.steps:,} steps (estimate), the Mach number {_plain(number)}; the "
                f"method is accurate below {TARGET:g} ({TARGET * cs:.2g} cells/step) and fails "
                f"near 1; reduce it by a factor of about {_plain(number / TARGET)}, or raise the "
                "viscosity"
            )
            yield Finding(SERIOUS if number > 1 else WARNING, " and ".join(push.keys), text)


def _plain(number: float) -> str:
    """The number with two digits, without an exponent."""
    return f"{float(f'{number:.2g}'):,g}"


def pressure_heads(seen: Inspected) -> Iterator[Finding]:
    """Forces towards a wall, whose pressure compresses the fluid."""
    case = seen.case
    for push, _ in seen.pushes:
        length, name = case.domain.size[push.axis], "xyz"[push.axis]
        change = push.largest * length / float(case.lattice.cs2)
        if driven_flow.is_closed(case, push.axis) and change > COMPRESSED:
            text = (
                f"acts along {name}, where walls stop the flow: from {name}- to {name}+ the "
                f"density changes by {change:.0%}; allowed for a nearly incompressible flow: "
                f"{COMPRESSED:.0%}; reduce the force, or leave out its constant part"
            )
            severity = SERIOUS if change > STRONGLY else WARNING
            yield Finding(severity, " and ".join(push.keys), text)


def sponges_between_walls(seen: Inspected) -> Iterator[Finding]:
    """Sponges in ducts, whose viscous loss of pressure compresses the fluid in front of them.

    Laminar flow in a duct of the hydraulic radius r loses the pressure 2 nu U / r^2 per cell, in a
    round pipe exactly; the mean of the added viscosity over the layer is a third of `viscosity`.
    """
    case, r = seen.case, seen.radius
    for k, sponge in enumerate(case.sponge):
        loss = 2 * sponge.viscosity / 3 * seen.speed / r**2 * sponge.thickness
        change = loss / float(case.lattice.cs2)
        if change > 2 * DENSER:
            text = (
                f"between walls, with the hydraulic radius {r:.3g}, the flow through the sponge "
                f"raises the density in front of it by about {change:.2g} (estimate), which "
                f"compresses the fluid upstream; allowed for a nearly incompressible flow: "
                f"{DENSER:g}; set viscosity = {sponge.viscosity * DENSER / change:.1g}"
            )
            yield Finding(WARNING, f"sponge.{k}.viscosity", text)


def coarse_ducts(seen: Inspected) -> Iterator[Finding]:
    """Turbulent 3D flow from an inlet through a duct whose viscous sublayer is not resolved.

    y+ of the first cell centre is that of a smooth pipe of the same hydraulic radius r, of the
    diameter d = 4 r.
    """
    case, r, U = seen.case, seen.radius, seen.given[0]
    inlet = any(each.face_flow is FaceFlow.GIVEN for each in case.boundaries)
    other = not inlet or case.dimensions < 3 or not case.single_fluid
    if other or 2 * r > min(case.domain.size) or case_findings.has_wall_model(case):
        return
    nu = least_viscosity(case.fluids[0])
    number = reynolds(nu, 4 * r, U)
    if number < TURBULENT:
        return
    first = first_y_plus_of_pipe(U, 4 * r, nu)
    if first > VISCOUS:
        text = (
            f"y+ of the first cell is about {first:.2g}, as in a smooth pipe with the hydraulic "
            f"radius {r:.3g} at the Reynolds number {number:.2g}; above {VISCOUS} the viscous "
            "sublayer is not resolved: without a wall model the friction and the loss of pressure "
            "are wrong by a factor, not by some percent; compare flows with each other only, or "
            f"refine the box {first / VISCOUS:.2g} times"
        )
        yield Finding(WARNING, case.fluid_key(case.fluids[0], "viscosity"), text)


def first_y_plus_of_pipe(speed: float, diameter: float, viscosity: float) -> float:
    """Return y+ = u_tau y / nu of the first cell centre, y = 1/2, in a smooth pipe.

        u_tau = U sqrt(f / 8),  f = 64 / Re (laminar), 1 / sqrt(f) = -1.8 log10(6.9 / Re)

    with Re = U d / nu and the turbulent law above TURBULENT. [Haaland 1983, J. Fluids Eng. 105, 89]
    """
    number = reynolds(viscosity, diameter, speed)
    turbulent = number > TURBULENT
    root = 1 / (-1.8 * log10(6.9 / number)) if turbulent else sqrt(64 / number)
    return speed * root / sqrt(8) / (2 * viscosity)


def densities(seen: Inspected) -> Iterator[Finding]:
    """Densities that differ too much, or are far from 1."""
    if not seen.case.single_fluid:
        return
    key = f"{seen.case.fluids[0].initial.where}.rho"
    ranges = [(key, each.least, each.largest) for each in seen.initial]
    ranges += driven_flow.density_ranges(seen.case)
    if not ranges:
        return
    least, largest = min(ranges, key=lambda each: each[1]), max(ranges, key=lambda each: each[2])
    low, high = least[1], largest[2]
    change = 2 * (high - low) / (high + low)
    if change > COMPRESSED:
        text = (
            f"the densities {low:.4g} and {high:.4g} differ by {change:.0%}; allowed for a nearly "
            f"incompressible flow: {COMPRESSED:.0%}; choose closer densities: the pressure is "
            "cs2 rho"
        )
        where = " and ".join(dict.fromkeys((least[0], largest[0])))
        yield Finding(SERIOUS if change > STRONGLY else WARNING, where, text)
    for key, low, high in ranges:
        if low > 1 + STRONGLY or high < 1 - STRONGLY:
            text = (
                f"found {low if low == high else (low + high) / 2:.4g}; moving walls and "
                "rounding assume densities near 1 in lattice units; give 1, or with [units] a "
                'text with its unit, such as "998 kg/m^3"'
            )
            yield Finding(WARNING, key, text)


def verdicts(seen: Inspected) -> Iterator[Finding]:
    """The verdicts on the grid Reynolds number and on tau.

    Verdicts at an estimated speed are at most warnings. Mach numbers are checked for each key that
    gives a velocity.
    """
    given, key = seen.given
    at = f"speed {given:.3g} of {key}" if given else f"estimated speed {seen.speed:.3g}"
    for fluid in seen.case.fluids:
        where = seen.case.fluid_key(fluid, "viscosity")
        usable = partial(is_usable, seen.case, fluid)
        for what, value, sentence, level in of_fluid(seen.case, fluid, seen.speed, usable):
            if level not in SEVERITY or what == "Mach":
                continue
            severity, place = SEVERITY[level], ""
            if what == "grid Reynolds":
                severity = WARNING if not given and level == "poor" else severity
                place = f" at the {at}"
            yield Finding(severity, where, f"{what} = {value}{place}: {sentence}")


def with_collision(fluid: Fluid, label: str) -> Fluid:
    """The fluid with the collision of a label, such as "trt+smagorinsky", see collision_label.

    A closure that gives the whole viscosity, as of a non-Newtonian fluid, is kept.
    """
    name, parameters, closure = parts_of(label)
    model = make("closures", closure) if closure else fluid.collision.closure
    kept = model if closure or (model and model.limits()) else None
    used = make("collisions", {"name": name} | parameters).model_copy(update={"closure": kept})
    return fluid.model_copy(update={"collision": used})


def is_usable(case: Case, fluid: Fluid, lattice: str, collision: str) -> bool:
    """Whether the case accepts this collision of a fluid, a label, on a lattice."""
    given = fluid.collision.closure
    if given and given.limits() and parts_of(collision)[2]:
        return False
    changed = with_collision(fluid, collision)
    fluids = tuple(changed if each is fluid else each for each in case.fluids)
    return not problems_with(case, lattice=make("lattices", lattice), fluids=fluids)


def initial_speeds(seen: Inspected) -> Iterator[Finding]:
    """Initial velocities from formulas or a file with a large Mach number."""
    for fluid, each in zip(seen.case.fluids, seen.initial, strict=False):
        if not fluid.initial.uniform:
            key = fluid.initial.key_of_velocity
            yield from case_findings.fast_flow(seen.case, key, each.speed)


def reference_velocities(seen: Inspected) -> Iterator[Finding]:
    """A `fluid.velocity` that differs much from the velocities of the boundaries.

    If no boundary has a velocity, it is compared with the initial velocities. If a force or a
    pressure drives the flow, only larger velocities are reported.
    """
    case = seen.case
    flow = {key: speed for key, speed, _ in given_speeds(case) if "boundary" in key and speed}
    driven = any(fluid.force for fluid in case.fluids) or seen.pushes
    if not flow and not driven:
        pairs = zip(case.fluids, seen.initial, strict=False)
        flow = {f"{fluid.initial.where}.u": each.speed for fluid, each in pairs if each.speed}
    key, speed = max(flow.items(), key=lambda item: item[1], default=("", 0.0))
    for fluid in case.fluids if flow else ():
        least = 0 if driven else 1 / RATIO
        if not fluid.velocity or not fluid.length or least <= speed / fluid.velocity <= RATIO:
            continue
        number = reynolds(fluid.viscosity, fluid.length, speed)
        text = (
            f"found {fluid.velocity:g}, but the largest velocity of the flow, {key}, is "
            f"{speed:.4g}: with it the Reynolds number is {number:.4g} instead of "
            f"{fluid.reynolds:.4g}; give both the same velocity"
        )
        yield Finding(WARNING, case.fluid_key(fluid, "velocity"), text)


def shapes(seen: Inspected) -> Iterator[Finding]:
    """The findings of the shapes of bodies."""
    flow = Flow(seen.speed, seen.axis)
    for body in seen.case.bodies:
        if body.shape is not None:
            yield from body.shape.findings(seen.case, f"body.{body.label}.shape", flow)


def errors_of_means(seen: Inspected) -> Iterator[Finding]:
    """`run.steady` by the error of a mean in a run with too few comparisons."""
    run = seen.case.run
    steady, needed = run.steady, 2 * LEAST
    if steady is not None and steady.by == "error" and run.steps // steady.every + 1 < needed:
        text = (
            f"found {steady.every}: the run compares {run.steps // steady.every + 1} times, and an "
            f"error is known after {needed} times only, so that the run does not end earlier; set "
            f"every below {run.steps / (needed - 1):.3g}, or run.steps above "
            f"{(needed - 1) * steady.every:,}"
        )
        yield Finding(WARNING, "run.steady.every", text)


CHECKS = (
    driven_speeds,
    errors_of_means,
    verdicts,
    initial_speeds,
    densities,
    pressure_heads,
    sponges_between_walls,
    coarse_ducts,
    reference_velocities,
    shapes,
)

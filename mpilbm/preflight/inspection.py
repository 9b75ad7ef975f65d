"""All findings of a case in one list, as `check` and the start of a run report it.

A check is a function in the CHECKS of one of three modules: case_findings (of the numbers and
formulas alone), geometry_findings (of solids and links), or this one (of both, and of initial
fields).
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np

from mpilbm.case import case_findings
from mpilbm.case.checks import given_speeds
from mpilbm.case.velocity_bounds import InitialRange, initial_range, largest_speed
from mpilbm.geometry import geometry_findings
from mpilbm.preflight import driven_flow
from mpilbm.units import mach, reynolds
from mpilbm.verdicts.findings import SERIOUS, WARNING, Finding, in_order
from mpilbm.verdicts.fluids import of_fluid
from mpilbm.verdicts.limits import FAST, SEVERITY

# relative differences of the density: of weak compressibility, and of another flow altogether
COMPRESSED, STRONGLY = 0.1, 0.5
TARGET = 0.1  # a Mach number with errors of one percent
# The largest velocity of a profile is 1.5 times (channel) to 2.25 times (duct) its mean; a Reynolds
# number may use either.
RATIO = 2.5


@dataclass(frozen=True)
class Seen:
    """What checks look at: the case, what was found in its slabs, its initial fields.

    initial: a range for each fluid, none where a checkpoint replaces the initial fields.
    """

    case: object
    parts: list
    initial: tuple[InitialRange, ...]

    @cached_property
    def pushes(self) -> list[tuple[driven_flow.Push, float]]:
        """What drives the flow, and the speed that it reaches."""
        return [
            (push, driven_flow.speed(self.case, push, self.radius))
            for push in driven_flow.pushes(self.case)
        ]

    @cached_property
    def radius(self) -> float:
        """The hydraulic radius: fluid volume over wall area."""
        links = sum(part.wall_links for part in self.parts)
        across = sum(c[0] > 0 for c in self.case.lattice.c)  # links of a cell to a plane wall
        return sum(part.fluid for part in self.parts) * across / links if links else inf

    @cached_property
    def given(self) -> float:
        """The largest speed that is given."""
        return largest_speed(self.case, self.initial)

    @cached_property
    def speed(self) -> float:
        """The largest speed that is given or, without one, that a force or pressure reaches.

        0 where that estimate is above the speed of sound, which driven_speeds reports.
        """
        estimate = max((speed for _, speed in self.pushes), default=0.0)
        return self.given or (estimate if estimate < sqrt(self.case.lattice.cs2) else 0.0)


def initial_ranges(case) -> tuple[InitialRange, ...]:
    """Those of all fluids; raises CaseError where Initial.evaluate does."""
    return tuple(initial_range(case, fluid) for fluid in case.fluids)


@np.errstate(over="ignore", invalid="ignore")  # an infinite estimate is reported as any other
def inspect(case, parts, initial=()) -> list[Finding]:
    """All findings of a case, the most serious first; see Seen."""
    seen = Seen(case, parts, initial)
    found = [finding for check in CHECKS for finding in check(seen)]
    found += case_findings.of_case(case)
    return in_order(found + geometry_findings.findings(case, parts))


def driven_speeds(seen: Seen) -> list[Finding]:
    """Forces and pressure differences that accelerate the flow too much."""
    case, found, cs = seen.case, [], sqrt(seen.case.lattice.cs2)
    for push, speed in seen.pushes:
        number = mach(speed, case.lattice.cs2)
        if number > FAST:
            found.append(Finding(
                SERIOUS if number > 1 else WARNING, " and ".join(push.keys),
                f"accelerates the flow along {'xyz'[push.axis]} to about {speed:.3g} cells a step "
                f"in {case.run.steps:,} steps (estimate), the Mach number {_plain(number)}; the "
                f"method is accurate below {TARGET:g} ({TARGET * cs:.2g} cells a step) and fails "
                f"near 1; reduce it by a factor of about {_plain(number / TARGET)}, or raise the "
                "viscosity",
            ))  # fmt: skip
    return found


def _plain(number: float) -> str:
    """Two digits without an exponent, below a million."""
    return f"{float(f'{number:.2g}'):,g}"


def pressure_heads(seen: Seen) -> list[Finding]:
    """Forces towards a wall, whose pressure compresses the fluid."""
    case, found = seen.case, []
    for push, _ in seen.pushes:
        length, name = case.domain.size[push.axis], "xyz"[push.axis]
        change = push.largest * length / float(case.lattice.cs2)
        if driven_flow.is_closed(case, push.axis) and change > COMPRESSED:
            found.append(Finding(
                SERIOUS if change > STRONGLY else WARNING, " and ".join(push.keys),
                f"acts along {name}, where walls stop the flow: from {name}- to {name}+ the "
                f"density changes by {change:.0%}; allowed for a nearly incompressible flow: "
                f"{COMPRESSED:.0%}; reduce the force, or leave out its constant part",
            ))  # fmt: skip
    return found


def densities(seen: Seen) -> list[Finding]:
    """Densities that differ too much, or that are far from 1."""
    case = seen.case
    if case.coupling:
        return []
    key = f"{case.fluids[0].initial.where}.rho"
    ranges = [(key, each.least, each.largest) for each in seen.initial]
    ranges += driven_flow.density_ranges(case)
    if not ranges:
        return []
    least, largest = min(ranges, key=lambda each: each[1]), max(ranges, key=lambda each: each[2])
    low, high = least[1], largest[2]
    found, change = [], 2 * (high - low) / (high + low)
    if change > COMPRESSED:
        found.append(Finding(
            SERIOUS if change > STRONGLY else WARNING,
            " and ".join(dict.fromkeys((least[0], largest[0]))),
            f"the densities {low:.4g} and {high:.4g} differ by {change:.0%}; allowed for a nearly "
            f"incompressible flow: {COMPRESSED:.0%}; choose closer densities: the pressure is "
            "cs2 rho",
        ))  # fmt: skip
    for key, low, high in ranges:
        if low > 1 + STRONGLY or high < 1 - STRONGLY:
            found.append(Finding(
                WARNING, key,
                f"found {low if low == high else (low + high) / 2:.4g}; moving walls and "
                "rounding assume densities near 1 in lattice units; give 1, or with [units] a text "
                'with its unit, as "998 kg/m^3"',
            ))  # fmt: skip
    return found


def verdicts(seen: Seen) -> list[Finding]:
    """Grid Reynolds number as judged in the plan, a warning at an estimated speed; else tau.

    Where it is known, a tau near 1/2 of an uncoupled fluid adds nothing. Mach numbers are judged
    for each key that gives a velocity.
    """
    found = []
    at = "" if seen.given else f" at the estimated speed {seen.speed:.3g}"
    for fluid in seen.case.fluids:
        where = seen.case.key(fluid, "viscosity") if fluid.label else "fluid.viscosity"
        for what, value, sentence, level in of_fluid(seen.case, fluid, seen.speed):
            decided = what == "tau" and seen.speed and float(value) < 1 and not seen.case.coupling
            if level in SEVERITY and what != "Mach" and not decided:
                estimated = at * (what == "grid Reynolds")
                severity = WARNING if estimated and level == "poor" else SEVERITY[level]
                found.append(Finding(severity, where, f"{what} = {value}{estimated}: {sentence}"))
    return found


def initial_speeds(seen: Seen) -> list[Finding]:
    """Initial velocities by formulas or from a file with a large Mach number."""
    pairs = zip(seen.case.fluids, seen.initial, strict=False)
    return [
        found
        for fluid, each in pairs
        if not fluid.initial.uniform
        for found in case_findings.fast_flow(
            seen.case, f"{fluid.initial.where}.{'file' if fluid.initial.file else 'u'}", each.speed
        )
    ]


def reference_velocities(seen: Seen) -> list[Finding]:
    """A `fluid.velocity` far from the velocities of the boundaries.

    Without any, far from the initial ones. Where a force or a pressure drives the flow, only what
    is faster counts.
    """
    case, found = seen.case, []
    flow = {key: speed for key, speed, _ in given_speeds(case) if "boundary" in key and speed}
    driven = any(fluid.force for fluid in case.fluids) or seen.pushes
    if not flow and not driven:
        pairs = zip(case.fluids, seen.initial, strict=False)
        flow = {f"{fluid.initial.where}.u": each.speed for fluid, each in pairs if each.speed}
    if not flow:
        return []
    key, speed = max(flow.items(), key=lambda item: item[1])
    for fluid in case.fluids:
        least = 0 if driven else 1 / RATIO
        if fluid.velocity and not least <= speed / fluid.velocity <= RATIO:
            where = case.key(fluid, "velocity") if fluid.label else "fluid.velocity"
            number = reynolds(fluid.viscosity, fluid.length, speed)
            found.append(Finding(
                WARNING, where,
                f"found {fluid.velocity:g}, but the largest velocity of the flow, {key}, is "
                f"{speed:.4g}: with it the Reynolds number is {number:.4g} instead of "
                f"{fluid.reynolds:.4g}; give both the same velocity",
            ))  # fmt: skip
    return found


CHECKS = (
    driven_speeds,
    verdicts,
    initial_speeds,
    densities,
    pressure_heads,
    reference_velocities,
)

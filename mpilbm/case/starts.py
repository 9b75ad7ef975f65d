"""Findings on the start of a flow: velocities that begin at once, and ramps that begin elsewhere.

A change of the velocity by du within a step sends a wave of the pressure rho cs du through the box,
2 cs du / u^2 = 2 / Ma times the dynamic pressure where du = u. Inlets and most outlets reflect it.
"""

from collections.abc import Iterator
from math import ceil, log10, pi, sqrt

from mpilbm.case.model import Case
from mpilbm.case.velocity_bounds import fastest
from mpilbm.core.formulas.ramp import rise
from mpilbm.core.formulas.values import CellValue, has_ramp
from mpilbm.model.findings import NOTE, WARNING, Finding
from mpilbm.physics.boundaries import Driven
from mpilbm.physics.boundary_capabilities import FaceFlow

CROSSINGS = 20  # of the box by sound, above which it does not fade soon
RAMP = 8  # crossings of the box by sound in which a recommended ramp rises


def inlets(case: Case) -> Iterator[tuple[str, Driven]]:
    """The key and the boundary of all faces through which a given velocity leads."""
    for k, boundary in enumerate(case.boundaries):
        if isinstance(boundary, Driven) and boundary.face_flow is FaceFlow.GIVEN:
            yield f"boundary.{k}", boundary


def ramps(case: Case) -> Iterator[tuple[str, int]]:
    """The key and the steps of all ramps: of faces, bodies and forces."""
    for key, boundary, _ in case.conditions():
        if isinstance(boundary, Driven) and boundary.ramp:
            yield f"{key}.ramp", boundary.ramp
    for fluid in case.fluids:
        if fluid.force and fluid.force.ramp:
            yield f"{case.key(fluid, 'force')}.ramp", fluid.force.ramp


def last_ramp(case: Case) -> int:
    """The step at which the last ramp ends; 0 without a ramp."""
    return max((steps for _, steps in ramps(case)), default=0)


def crossings_in(case: Case, steps: int) -> float:
    """How often sound crosses the longest side of the box in so many steps."""
    return steps * sqrt(case.lattice.cs2) / max(case.domain.size)


def ramp_for(case: Case) -> int:
    """The steps of the ramp to recommend: RAMP crossings of the box by sound, with two digits.

    Behind a circle of 16 cells in 128 x 64 cells, Re 100, Mach 0.035 and 0.17, the pressure after
    25 crossings varied by 85 and 8.9 dynamic pressures after a sudden start from rest with a
    reflecting outlet, by 4.2 and 2.8 with this ramp; with the outlet `characteristic` by 2.5 and
    1.1, and by 0.01 and 0.2.
    """
    return ramp_of(max(case.domain.size), float(case.lattice.cs2))


def ramp_of(cells: int, cs2: float) -> int:
    """The steps of the ramp to recommend in a box whose longest side has so many cells."""
    steps = RAMP * cells / sqrt(cs2)
    unit = 10 ** max(0, int(log10(steps)) - 1)
    return ceil(steps / unit) * unit


def sound_stays(case: Case) -> float:
    """How often the longest wave of sound crosses the box before it fades by exp(-1).

    Half of its length is that of the box. Collisions without a rate of the bulk viscosity are taken
    as those whose bulk viscosity is the shear viscosity.
    """
    fluid, length = case.fluids[0], max(case.domain.size)
    nu, collision = fluid.viscosity, fluid.collision
    damping = collision.sound_viscosity(nu, case.lattice) if collision.bulk_rate else 2 * nu
    rate = damping * (pi / length) ** 2 / 2
    return sqrt(case.lattice.cs2) / (rate * length)


def sudden_starts(case: Case) -> Iterator[Finding]:
    """An inlet whose velocity changes fast while sound stays: a short ramp, or none past bodies.

    A sphere of 16 cells in 160 x 64 x 64 cells, Re 100, Mach 0.087, from rest: with a ramp of 1.4
    crossings the waves between inlet and outlet made `regularized`, `recursive_regularized`, `trt`
    and `mrt` unstable (one NVIDIA H100, 2026-11-26); `regularized` with 4.3 and 8.3 crossings (CPU)
    and with 14 (H100) was stable.
    """
    if not case.single_fluid or sound_stays(case) <= CROSSINGS:
        return
    steps = ramp_for(case)
    for key, boundary in inlets(case):
        given = boundary.velocity or ()
        changes = any(not has_ramp(u) or CellValue("u", u, case.dimensions).timed for u in given)
        if changes or not (boundary.ramp or case.bodies):
            continue
        if not boundary.ramp:
            yield Finding(NOTE, key, _sudden(case, fastest(case, boundary)[0], steps))
            return
        if boundary.ramp < steps / 2:
            text = (
                f"found {boundary.ramp} steps, in which sound crosses the box "
                f"{crossings_in(case, boundary.ramp):.2g} times: so fast a rise sends pressure "
                "waves that are reflected between inlet and outlet and may make the flow unstable; "
                f"set ramp = {steps}"
            )
            yield Finding(WARNING, f"{key}.ramp", text)
            return


def _sudden(case: Case, speed: float, steps: int) -> str:
    """The sentence on an inlet of this speed without a ramp."""
    wave = 2 * sqrt(case.lattice.cs2) / speed
    more = ", and start from rest (remove initial.u)" if any(case.fluids[0].initial.u) else ""
    return (
        f"the flow past the bodies starts at once, which sends a pressure wave of up to "
        f"{wave:.2g} dynamic pressures through the box; if forces or pressures of the first "
        f"part of the run matter, set ramp = {steps}{more}"
    )


def stopped_starts(case: Case) -> Iterator[Finding]:
    """An inlet that rises from 0 while the fluid moves at the start."""
    initial = case.fluids[0].initial
    if not any(initial.u) and initial.file is None:
        return
    source = initial.key_of_velocity
    for key, boundary in inlets(case):
        if boundary.ramp:
            text = (
                f"the inlet is at rest at step 0, but the fluid has the velocity of {source}, so "
                f"that the inlet stops it at once; remove {source}, or the ramp"
            )
            yield Finding(WARNING, f"{key}.ramp", text)


def late_ramps(case: Case) -> Iterator[Finding]:
    """Ramps that end after the run."""
    for key, steps in ramps(case):
        if steps > case.run.steps:
            share = float(rise(case.run.steps, steps))
            text = (
                f"found {steps} steps, but the run ends after {case.run.steps}, at {share:.2g} "
                "times the given value; shorten the ramp, or raise run.steps"
            )
            yield Finding(WARNING, key, text)

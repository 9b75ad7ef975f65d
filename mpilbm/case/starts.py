"""Findings on the start of a flow: velocities that begin at once, and ramps that begin elsewhere.

A change of the velocity by du within a step sends a wave of the pressure rho cs du through the box,
2 cs du / u^2 = 2 / Ma times the dynamic pressure where du = u. Inlets and most outlets reflect it.
"""

from collections.abc import Iterator
from math import ceil, log10, pi, sqrt

from mpilbm.case.model import Case
from mpilbm.case.velocity_bounds import fastest
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


def ramp_for(case: Case) -> int:
    """The steps of the ramp to recommend: RAMP crossings of the box by sound, with two digits.

    Behind a circle of 16 cells in 128 x 64 cells, Re 100, Mach 0.035 and 0.17, the pressure after
    25 crossings varied by 85 and 8.9 dynamic pressures after a sudden start from rest with a
    reflecting outlet, by 4.2 and 2.8 with this ramp; with the outlet `characteristic` by 2.5 and
    1.1, and by 0.01 and 0.2.
    """
    steps = RAMP * max(case.domain.size) / sqrt(case.lattice.cs2)
    unit = 10 ** max(0, int(log10(steps)) - 1)
    return ceil(steps / unit) * unit


def sound_stays(case: Case) -> float:
    """How often sound of half the length of the box crosses it before it fades by exp(-1)."""
    fluid, length = case.fluids[0], max(case.domain.size)
    collision = fluid.collision
    nu = collision.sound_viscosity(fluid.viscosity, case.lattice) if collision.bulk_rate else 0.0
    rate = max(nu, 1e-300) * (pi / length) ** 2 / 2
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
            speed, _ = fastest(case, boundary)
            yield Finding(NOTE, key, _sudden(case, speed, steps))
            return
        if boundary.ramp < steps / 2:
            text = (
                f"found {boundary.ramp:g} steps, in which sound crosses the box "
                f"{boundary.ramp * RAMP / steps:.2g} times: so fast a rise sends pressure waves "
                "that are reflected between inlet and outlet and may make the flow unstable; set "
                f"ramp = {steps}"
            )
            yield Finding(WARNING, f"{key}.ramp", text)
            return


def _sudden(case: Case, speed: float, steps: int) -> str:
    """The sentence on an inlet of this speed without a ramp."""
    wave = 2 * sqrt(case.lattice.cs2) / speed
    more = ", and start from rest (initial.u = 0)" if any(case.fluids[0].initial.u) else ""
    return (
        f"the flow past the bodies starts at once, which sends a pressure wave of up to "
        f"{wave:.2g} dynamic pressures through the box; if forces or pressures of the first "
        f"part of the run matter, set ramp = {steps}{more}"
    )


def stopped_starts(case: Case) -> Iterator[Finding]:
    """An inlet that rises from 0 while the fluid moves at the start."""
    fluid = case.fluids[0]
    if not fluid.initial.uniform or not any(fluid.initial.u):
        return
    for key, boundary in inlets(case):
        if boundary.ramp:
            text = (
                f"the inlet is at rest at step 0, but the fluid has initial.u = "
                f"{list(fluid.initial.u)}, so that the inlet stops it at once; remove initial.u, "
                "or the ramp"
            )
            yield Finding(WARNING, f"{key}.ramp", text)

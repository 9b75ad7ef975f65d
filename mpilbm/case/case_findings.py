"""Findings from the numbers and formulas of a case, without its cells.

Each function in CHECKS takes a case without problems and returns findings.
"""

from collections.abc import Iterator
from itertools import product
from math import pi, prod, sqrt

from mpilbm.case.checks import from_objects, given_speeds, norm, problems_with
from mpilbm.case.compressibility import real_sound
from mpilbm.case.driving import forced_channel
from mpilbm.case.meetings import meetings
from mpilbm.case.model import Case
from mpilbm.case.motions import motions
from mpilbm.case.scalars import given_values, viscosity_at_centre
from mpilbm.case.sliding_walls import flow_along_walls, nodes_along_outlets
from mpilbm.case.starts import CROSSINGS, late_ramps, stopped_starts, sudden_starts
from mpilbm.case.velocity_bounds import net_inflow, outward_speed
from mpilbm.core.units import mach, tau_from_viscosity
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.model.limits import SEVERITY, judge_mach, judge_tau
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundaries.wall_model import WallModel
from mpilbm.physics.boundary_capabilities import FaceFlow, Reads
from mpilbm.physics.wall_laws import VISCOUS

LOST = 2**12  # a relative change per step below 1 / LOST does not change a number with 11 bits
USUAL_SPEED = 0.05  # if the case gives none
SMALL = 0.01  # relative change of a velocity that causes no finding
MOST_FIXES = 3  # named in a finding
SHORT = 16  # wavelength of sound, in cells
GROWTH = 0.1  # relative change of the mass during a run above which the result is wrong


def of_case(case: Case) -> list[Finding]:
    """The findings on keys, which its reading has noted, and those of all CHECKS."""
    return [*case.of_keys, *(found for check in CHECKS for found in check(case))]


def speeds(case: Case) -> Iterator[Finding]:
    """Velocities with a large Mach number; `fluid.velocity` only if no other is as large.

    Initial fields that differ from cell to cell are checked by inspection.initial_speeds.
    """
    fields = {f"{fluid.initial.where}.u" for fluid in case.fluids if not fluid.initial.uniform}
    found = [each for each in given_speeds(case) if each[0] not in fields]
    scales = {case.fluid_key(fluid, "velocity") for fluid in case.fluids}
    flow = max((speed for key, speed, _ in found if key not in scales), default=0)
    for key, speed, when in found:
        if key not in scales or speed > flow:
            yield from fast_flow(case, key, speed, when)


def fast_flow(case: Case, key: str, speed: float, when: str = "") -> Iterator[Finding]:
    """The finding for one velocity, if it is too fast."""
    number = mach(speed, case.lattice.cs2)
    sentence, level = judge_mach(number)
    if level in SEVERITY:
        what = f"the speed {speed:.4g}{when}, Mach number {number:.2g}, is"
        yield Finding(SEVERITY[level], key, f"{what} {sentence}")


def mass(case: Case) -> Iterator[Finding]:
    """Velocities at faces with a net inflow or outflow, and outflows that let the mass drift."""
    held = any(getattr(boundary, "rho", None) is not None for boundary in case.boundaries)
    drifting = [b.name for b in case.boundaries if b.capabilities.drifts]
    if drifting and not held:
        text = (
            f"no face fixes the density, and with '{drifting[0]}' the mass may grow without bound; "
            "give one of the faces rho, or use characteristic"
        )
        yield Finding(WARNING, "boundary", text)
    elif (inflow := net_inflow(case)) is not None:
        growth = inflow.mean * case.run.steps / prod(case.domain.size)
        change = f"changes by {growth:+,.1%} during the run" if growth else "varies"
        text = (
            f"the velocities at the faces add {inflow.net:.4g} cells per step at t = {inflow.t}, "
            f"and no face lets this volume out: the mass {change}; give rho instead of the "
            "velocity at one of the faces, or add an outflow"
        )
        yield Finding(SERIOUS if abs(growth) > GROWTH else WARNING, "boundary", text)


def is_closed(case: Case) -> bool:
    """Whether no fluid passes the faces of the box, so that the mass is constant."""
    return all(boundary.face_flow is FaceFlow.CLOSED for boundary in case.boundaries)


def leaking(case: Case) -> dict[str, Boundary]:
    """The boundaries that do not conserve the mass exactly, by their key paths.

    These are boundaries that set values at the node, and walls without `Capabilities.conserves`.
    """
    found = {key: boundary for key, boundary, _ in case.conditions()}
    return {k: b for k, b in found.items() if b.wall_at == "node" or not b.capabilities.conserves}


def remedy(case: Case) -> str:
    """The settings with which the boundaries of a case conserve the mass; at most three."""
    fixes = []
    for key, boundary in leaking(case).items():
        offers = "conserve_mass" in type(boundary).model_fields
        fixes.append(f"{key}.conserve_mass = true" if offers else f'{key}.name = "bounce_back"')
    more = f" and {len(fixes) - MOST_FIXES} more" if len(fixes) > MOST_FIXES else ""
    return ", ".join(fixes[:MOST_FIXES]) + more


def closed_flow(case: Case) -> Iterator[Finding]:
    """Walls that move in a closed flow and do not conserve the mass."""
    found = leaking(case) if is_closed(case) else {}
    for key in [key for key, each in found.items() if each.wall_velocity is not None][:1]:
        text = (
            f"the flow is closed, and '{found[key].name}' does not conserve the mass exactly: "
            "between cylinders of radii 12 and 24, the inner turning at 0.05, it grew by 1.9e-6 "
            f"per step; the run reports a change above 0.1 %; to prevent it set {remedy(case)}"
        )
        yield Finding(WARNING, key, text)


def density_at_walls(case: Case) -> Iterator[Finding]:
    """Half-way walls that move in a fluid whose density differs from their rho_0 = 1."""
    rho = [getattr(boundary, "rho", None) for boundary in case.boundaries]
    rho += [fluid.initial.value for fluid in case.fluids]
    far = max((r for r in rho if isinstance(r, int | float)), key=lambda r: abs(r - 1), default=1)
    (momentum,) = case.fluids[0].collision.velocity([1.0], far)
    error = momentum - 1
    for key, each, _ in case.conditions() if case.single_fluid and abs(error) >= SMALL else ():
        local = each.capabilities.uses_distance or each.capabilities.reads is Reads.CELL
        if each.wall_velocity is not None and not local:
            text = (
                f"the wall moves fluid of the density 1: the speed of fluid of density {far:g} "
                f"next to it has an error of {error:+.1%}; use densities close to 1, or the "
                "equilibrium incompressible"
            )
            severity = SERIOUS if abs(error) > GROWTH else WARNING
            yield Finding(severity, f"{key}.velocity", text)


def flow_through_walls(case: Case) -> Iterator[Finding]:
    """Walls through which the flow leaves so fast that they are unstable.

    Such a wall does not fix the tangential velocity. The odd-even wave along it grows if
    u_n > 2 sqrt(3) nu, slightly earlier for nu < 0.002; on D3Q13 if u_n > 2 nu. Boundaries that
    set whole cells are not checked: tamm_mott_smith is stable up to about 7 nu.
    [Linear analysis of bgk, trt and regularized on D2Q9; runs of trt on D3Q19, mrt on D3Q13]
    """
    nu = min(fluid.viscosity for fluid in case.fluids)
    limit = (2 if case.lattice.staggered else 2.9) * nu
    for k, boundary in enumerate(case.boundaries):
        wall = boundary.wall_at == "half" and not boundary.capabilities.whole_cell
        for face in boundary.where if wall and getattr(boundary, "velocity", None) else ():
            out, when = outward_speed(case, boundary, face)
            if out > limit:
                text = (
                    f"the flow leaves through {face} at {out:.3g}{when}; above {limit:.3g} "
                    f"({limit / nu:.2g} viscosities) '{boundary.name}' is unstable there; use an "
                    "outflow, or equilibrium with this velocity"
                )
                yield Finding(SERIOUS, f"boundary.{k}.velocity", text)


def has_wall_model(case: Case) -> bool:
    """Whether a face or a body has a wall model."""
    return any(isinstance(boundary, WallModel) for _, boundary, _ in case.conditions())


def needless_wall_models(case: Case) -> Iterator[Finding]:
    """Wall models of a channel whose cells resolve the viscous sublayer."""
    channel = forced_channel(case)
    for k, boundary in enumerate(case.boundaries):
        if isinstance(boundary, WallModel) and channel and channel.first_y_plus <= VISCOUS:
            text = (
                f"y+ of the first cell is {channel.first_y_plus:.2g}; up to {VISCOUS} the cells "
                "resolve the viscous sublayer, and a wall law is less accurate; use bounce_back"
            )
            yield Finding(WARNING, f"boundary.{k}", text)


def undamped_sound(case: Case) -> Iterator[Finding]:
    """Sound that crosses a box with inlets or outlets many times before it fades.

    A wave of k = 2 pi / SHORT decays as exp(-nu_L k^2 t / 2), see Collision.sound_viscosity.
    Inlets, walls and outlets reflect it, and it disturbs pressure and forces; measurements: manual,
    "Sound at high Reynolds numbers".
    """
    for fluid in () if is_closed(case) else case.fluids:
        collision = fluid.collision
        if collision.bulk_rate is None:
            continue
        damping = collision.sound_viscosity(fluid.viscosity, case.lattice)
        steps = 2 / (damping * (2 * pi / SHORT) ** 2)
        crossings = steps * sqrt(case.lattice.cs2) / max(case.domain.size)
        if crossings > CROSSINGS:
            rate = getattr(collision, collision.bulk_rate)
            given = "is not given, and the viscosity alone damps sound"
            if rate is not None:
                given = f"found {rate:g}, which hardly damps sound"
            text = (
                f"{given}: a wave of {SHORT} cells fades in {steps:.2g} steps, in which it crosses "
                f"the box {crossings:.2g} times and disturbs pressure and forces; set "
                f"{collision.bulk_rate} = 1"
            )
            key = f"{case.key(fluid, 'collision')}.{collision.bulk_rate}"
            yield Finding(WARNING, key, text)


def sixteen_bits(case: Case) -> Iterator[Finding]:
    """Changes per step below half a unit of the last of the 11 bits of float16, or of its tail."""
    if case.precision.storage != "float16":
        return
    lost = LOST << max((tail.bits for tail in case.formats.tails), default=0)
    speed = max((speed for _, speed, _ in given_speeds(case)), default=0) or USUAL_SPEED
    length = min(case.domain.size)
    mixed = case.precision.model_copy(update={"storage": "mixed"})
    instead = "float32" if problems_with(case, precision=mixed) else "mixed"
    fix = f'use storage = "{instead}", or measure the error with mpilbm precision'
    for fluid in case.fluids:
        force = norm(fluid.force.value) if fluid.force else 0
        if 0 < force < speed / lost:
            text = (
                f"16 bits lose the force: it adds {force:.2g} per step to a speed of {speed:.2g}, "
                f"which is stored in units of {2 * speed / lost:.2g}; {fix}"
            )
            yield Finding(WARNING, "precision.storage", text)
        change = fluid.viscosity * (pi / length) ** 2
        if change < 1 / lost:
            text = (
                f"16 bits may lose the viscosity: across {length} cells the relative change of a "
                f"slow flow is {change:.2g} per step, less than half a stored unit, "
                f"{1 / lost:.2g}; {fix}"
            )
            yield Finding(WARNING, "precision.storage", text)


def intrinsics(case: Case) -> Iterator[Finding]:
    """`precision.intrinsics` on a CPU, where it has no effect."""
    if case.precision.intrinsics and case.backend.name == "cpu":
        yield Finding(NOTE, "precision.intrinsics", "has no effect on a CPU; remove it")


def distances(case: Case) -> Iterator[Finding]:
    """Boundaries that use wall distances at bodies that have none: masks and voxels."""
    for body in case.bodies:
        surface = body.shape is not None and body.shape.has_surface
        if body.boundary.capabilities.uses_distance and not surface:
            solid, with_surface = "a mask has", ""
            if body.shape is not None:
                solid, with_surface = "voxels have", " with a surface"
            text = (
                f"'{body.boundary.name}' uses the distance of the wall along each link, but "
                f"{solid} no distances: the wall is half-way along each link, which is of first "
                f"order where it is curved; give the body a shape{with_surface}, or use bounce_back"
            )
            yield Finding(WARNING, f"body.{body.label}.boundary", text)


def from_registered(case: Case) -> Iterator[Finding]:
    """The findings, or warnings as sentences, that registered objects return."""
    for sentence, item in from_objects(case, "warnings"):
        where, _, message = sentence.partition(": ")
        yield Finding(item.severity if isinstance(item, Finding) else WARNING, where, message)


def scalar_collisions(case: Case) -> Iterator[Finding]:
    """Collisions of scalars that are inaccurate at the diffusivity."""
    periodic = all(case.domain.periodic) and not case.bodies
    for each in case.scalars:
        if caution := each.collision.caution(each.diffusivity, each.lattice):
            fix = each.collision.remedy(each.lattice, periodic)
            text = "; ".join(filter(None, (caution, fix)))
            yield Finding(NOTE, f"{each.key}.collision", text)


def scalar_viscosities(case: Case) -> Iterator[Finding]:
    """A viscosity that is a formula of scalars, at the scalars' given values.

    These are the initial values and the values on faces and bodies that are numbers. The formula is
    evaluated at the centre of the box at t = 0, for all combinations of the extremes.
    """
    fluid = case.fluids[0]
    given = {scalar.label: given_values(scalar) for scalar in case.scalars}
    if not fluid.formula or not all(given.values()):
        return
    key = case.fluid_key(fluid, "viscosity")
    for values in product(*({min(values), max(values)} for values in given.values())):
        state = dict(zip(given, values, strict=True))
        nu = viscosity_at_centre(case, fluid.formula, state)
        at = ", ".join(f"{label} = {value:g}" for label, value in state.items())
        if nu is not None and nu <= 0:
            wanted = "allowed: above 0 wherever the scalars may be; change the formula"
            yield Finding(SERIOUS, key, f"is {nu:.3g} at {at}; {wanted}")
        elif nu is not None:
            tau = tau_from_viscosity(nu, case.lattice.cs2)
            sentence, level = judge_tau(tau)
            if level in SEVERITY:
                yield Finding(NOTE, key, f"tau = {tau:.4g} at {at}: {sentence}")


CHECKS = (
    speeds,
    real_sound,
    mass,
    closed_flow,
    density_at_walls,
    flow_through_walls,
    flow_along_walls,
    nodes_along_outlets,
    needless_wall_models,
    undamped_sound,
    sudden_starts,
    stopped_starts,
    late_ramps,
    sixteen_bits,
    intrinsics,
    distances,
    from_registered,
    scalar_collisions,
    scalar_viscosities,
    motions,
    meetings,
)

"""Verdicts on the relaxation time, the Mach number and the stability of a flow, and of a case.

Each verdict is a sentence and a level: good, fair or poor. The verdicts on stability use
measurements of flows, in `stability.json` in this folder, which is written by

    tools/stability_map --known tools/measured/h200_stability_2026-11-22.json \\
        --known tools/measured/epyc_stability_2026-11-26.json \\
        --known tools/measured/epyc_body_stability_2026-11-26.json \\
        --known tools/measured/epyc_d3q27_stability_2026-11-27.json \\
        --table mpilbm/model/stability.json

Its entries [lattice][collision][flow] contain, for each Mach number, the largest stable grid
Reynolds number u/nu and the smallest one at which the flow failed (null: it did not fail). The
collision is a label, see collision_label. `vortex` is a periodic box, `cavity` a box with a moving
lid, `body` a sphere or cylinder between an inlet and an outlet, `road` a block above a wall that
moves with the fluid, between an inlet and an outlet. A case is judged by the flows that are similar
to it.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from math import log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpilbm.core.units import mach, reynolds, tau_from_viscosity
from mpilbm.model.case import Case, Fluid
from mpilbm.model.collision_label import label_of
from mpilbm.model.findings import NOTE, SERIOUS
from mpilbm.model.flow_kinds import flows

if TYPE_CHECKING:
    from mpilbm.physics.closures import Closure
    from mpilbm.physics.collisions import Collision

Usable = Callable[[str, str], bool]  # whether a case can use (lattice, collision)

FLOWS = {
    "vortex": "in a periodic vortex flow",
    "cavity": "in a lid-driven cavity",
    "body": "in the flow past a body between an inlet and an outlet",
    "road": "in the flow past a body above a moving road",
}
INSTEAD = {"road": ("cavity", "body"), "walls": ("cavity",)}  # of a flow that was not measured
POSSIBLY, LIKELY = "possibly unstable", "likely unstable"  # predictions, before a run
MARGIN = 0.75  # a flow is near the limit above this fraction of the largest stable value
UNMEASURED = 8  # grid Reynolds number up to which unmeasured collisions are considered stable
SEVERITY = {"poor": SERIOUS, "fair": NOTE}  # severity of the finding for a level; good: no finding
NEAR = 0.51  # relaxation time below which stability depends on the grid Reynolds number
FAST = 0.3  # Mach number above which a flow is too fast
# Densities are near 1 in lattice units, and 1000 if kg/m^3 are entered by mistake. In this range
# the inverse and the products of densities are finite in float32.
LEAST_DENSITY, LARGEST_DENSITY = 1e-30, 1e6
DENSITIES = f"from {LEAST_DENSITY:g} to {LARGEST_DENSITY:g}"


def judge_tau(tau: float) -> tuple[str, str]:
    """Return verdict and level for a relaxation time."""
    if tau < 0.501:
        return "very near 1/2: stable only for very slow flows; refine the box", "poor"
    if tau < NEAR:
        return "near 1/2: stable only where the flow is well resolved", "fair"
    if tau > 2:
        return "large: inaccurate; lower velocity and viscosity together", "fair"
    return "fine", "good"


def judge_mach(number: float) -> tuple[str, str]:
    """Return verdict and level for a Mach number; the compressibility error is of order Ma^2."""
    error = f"compressibility error about Ma^2 = {number**2:.1%}"
    if number > FAST:
        return f"too fast: {error}; lower the velocity, and the viscosity with it", "poor"
    return (f"fine: {error}", "good") if number < 0.2 else (f"fast: {error}", "fair")


def judge_stability(
    number: float,
    mach: float,
    lattice: str,
    collision: str,
    flows: tuple[str, ...] = ("vortex",),
    end: tuple[str, float] | None = None,
    usable: Usable = lambda lattice, collision: True,
) -> tuple[str, str]:
    """Return verdict and level for a grid Reynolds number u/nu.

    number     the grid Reynolds number
    mach       the Mach number
    collision  the label, such as "trt+smagorinsky", see collision_label
    flows      the similar measured flows; the least stable one counts. "walls" (walls at rest, no
               inlet) uses the limits of `cavity`, but if only these are exceeded, the level is
               fair, not poor
    end        the name of an inlet or outlet, and the grid Reynolds number from which measured
               flows failed with it
    usable     whether advice may name a collision on a lattice
    """
    verdict, sentence, level = _judge_measured(number, mach, lattice, collision, flows, usable)
    if end is not None and number > MARGIN * end[1]:
        verdict = POSSIBLY if verdict == "fine" else verdict
        sentence += (
            f"; measured with 'equilibrium' as inlet and outlet: with '{end[0]}' flows "
            f"failed from {end[1]:g} on, on D2Q9"
        )
        level = "fair" if level == "good" else level
    return f"{verdict}: {sentence}" if verdict else sentence, level


def _judge_measured(
    number: float, mach: float, lattice: str, collision: str, flows: tuple[str, ...], usable: Usable
) -> tuple[str, str, str]:
    """Return a short verdict, the measured limits as a sentence, and the level."""
    walls = "walls" in flows
    found = [
        (*known, flow)
        for flow in similar_flows(lattice, collision, flows)
        if (known := limit(lattice, collision, flow, mach)) is not None
    ]
    if not found:
        level = "good" if number <= UNMEASURED else "fair"
        return "", f"the stability of {collision} on {lattice} has not been measured", level
    most, failed, flow = min(found, key=lambda one: one[0])
    bound = f"{collision} was stable up to {most:g}"
    if failed is None:
        bound += f" {FLOWS[flow]}, the largest measured"
        if number <= most:
            return "fine", bound, "good"
        others = _alternatives(number, mach, lattice, [one[-1] for one in found], usable)
        return "not measured", f"{bound}{f'; stable there: {others}' if others else ''}", "fair"
    bound += f" and failed at {failed:g} {FLOWS[flow]}"
    if number <= MARGIN * most:
        return "fine", bound, "good"
    if number < sqrt(most * failed):
        return "near the limit", bound, "fair"
    way = _fix(number, mach, lattice, [one[-1] for one in found], usable)
    there = f"{bound} at Mach {_nearest(lattice, mach):.2g}; {way}"
    if walls and judge_stability(number, mach, lattice, collision)[1] != "poor":
        return POSSIBLY, there, "fair"
    return LIKELY, there, "poor"


def similar_flows(lattice: str, collision: str, flows: Sequence[str]) -> list[str]:
    """The flows by which a collision is judged: others INSTEAD of one that was not measured."""
    known = measured_on(lattice).get(collision, {})
    found = [one for flow in flows for one in ((flow,) if flow in known else INSTEAD.get(flow, ()))]
    return [flow for flow in FLOWS if flow in found]


def limit(
    lattice: str, collision: str, flow: str, mach: float
) -> tuple[float, float | None] | None:
    """Return the largest stable grid Reynolds number and the smallest failed one (or None).

    They belong to the nearest measured Mach number. None if the collision was not measured in this
    flow.
    """
    limits = measured_on(lattice).get(collision, {}).get(flow)
    if limits is None:
        return None
    stable, failed = limits[measured()[lattice]["mach"].index(_nearest(lattice, mach))]
    return stable, failed


def _nearest(lattice: str, mach: float) -> float:
    """Return the measured Mach number of a lattice that is nearest to `mach`."""
    return min(measured()[lattice]["mach"], key=lambda one: abs(log(one / mach)))


def stable_collisions(
    number: float, mach: float, lattice: str, flows: Sequence[str], closed: bool = False
) -> list[str]:
    """Return the collisions on a lattice that are stable in all `flows` at a grid Reynolds number.

    With `closed` these are collisions with a closure, otherwise collisions without one.
    """
    names = measured_on(lattice)
    known = {n: [limit(lattice, n, flow, mach) for flow in flows] for n in names}
    stable = [n for n, limits in known.items() if all(one and number <= one[0] for one in limits)]
    return [name for name in stable if ("+" in name) == closed]


def _fix(number: float, mach: float, lattice: str, flows: Sequence[str], usable: Usable) -> str:
    """Return advice: other collisions that are stable, or a finer box.

    At Mach numbers far above the measured ones, the advice is to lower the velocity.
    """
    if mach > 1.5 * (largest := max(measured()[lattice]["mach"])):
        return f"lower the velocity, nothing was measured above Mach {largest:.2g}"
    finer = "use a finer box or a lower Reynolds number"
    others = _alternatives(number, mach, lattice, flows, usable)
    return f"stable there: {others}; or {finer}" if others else finer


def _alternatives(
    number: float, mach: float, lattice: str, flows: Sequence[str], usable: Usable
) -> str:
    """Return stable usable collisions on this lattice, then on others of its dimension, or ""."""
    lattices = [lattice, *(one for one in measured() if one != lattice and one[:2] == lattice[:2])]
    for closed in (False, True):
        named: list[str] = []
        parts: list[str] = []
        for one in lattices:
            stable = stable_collisions(number, mach, one, flows, closed)
            more = [name for name in stable if name not in named and usable(one, name)]
            named += more
            parts += [", ".join(more) + f" on {one}" * (one != lattice)] if more else []
        if parts:
            return "; ".join(parts)
    return ""


@cache
def measured() -> dict[str, Any]:
    """Return the table of limits, stability.json."""
    return json.loads(Path(__file__).with_name("stability.json").read_text("utf-8"))


def measured_on(lattice: str) -> dict[str, Any]:
    """Return the limits on a lattice, {label: {flow: limits}}; empty if none were measured."""
    return measured().get(lattice, {"collisions": {}})["collisions"]


def stability(
    case: Case, fluid: Fluid, speed: float, usable: Usable = lambda lattice, collision: True
) -> tuple[str, str]:
    """Return a sentence on the stability of a fluid at the speed, and good, fair or poor.

    It is that of an equal collision, see Collision.equal_to.
    """
    collision = fluid.collision.equal_to(case.lattice)
    name, exact = _judged_as(case, collision)
    numbers = reynolds(least_viscosity(fluid), 1, speed), mach(speed, float(case.lattice.cs2))
    sentence, level = judge_stability(
        *numbers, case.lattice.name, name, flows(case), _least_stable_end(case), usable
    )
    if not exact:
        sentence += "; measured with the default parameters"
    if collision.name != fluid.collision.name:
        sentence += f"; {collision.name} is the same collision on {case.lattice.name}"
    return sentence, level


def least_viscosity(fluid: Fluid) -> float:
    """The viscosity of a fluid; of a non-Newtonian fluid the least one."""
    closure = fluid.collision.closure
    limits = closure.limits() if closure else None
    return limits[0] if limits else fluid.viscosity


def _least_stable_end(case: Case) -> tuple[str, float] | None:
    """The least stable inlet or outlet, and the grid Reynolds number from which flows failed."""
    ends = [
        (face.capabilities.fails_from, face.name)
        for face in case.boundaries
        if face.face_flow.crosses and face.capabilities.fails_from is not None
    ]
    if not ends:
        return None
    number, name = min(ends)
    return name, number


def _judged_as(case: Case, collision: "Collision") -> tuple[str, bool]:
    """The label by whose limits a collision is judged, and whether its parameters are those.

    Where a similar flow was run with the default parameters only, these limits count.
    """
    model, known = collision.closure, measured_on(case.lattice.name)
    closure = model.name if model and not model.limits() else ""
    coupled = " of coupled fluids" if case.coupling else ""
    own, usual = (
        label_of(collision.name, parameters, closure) + coupled
        for parameters in (_changed(collision), {})
    )
    run, wanted = known.get(own, {}), flows(case)
    plain = model is None or not closure or not _changed(model)
    for needed in (wanted, similar_flows(case.lattice.name, usual, wanted)):
        if all(flow in run for flow in needed):
            return own, plain or not run
    return usual, own == usual and plain


def _changed(collision: "Collision | Closure") -> dict[str, Any]:
    """The parameters of an object, except its closure, that differ from their defaults."""
    fields = type(collision).model_fields.items()
    required = {key: getattr(collision, key) for key, field in fields if field.is_required()}
    usual = type(collision)(**required).model_dump(exclude={"closure"})
    found = collision.model_dump(exclude={"closure"})
    return {key: value for key, value in found.items() if value != usual.get(key)}


def of_fluid(
    case: Case, fluid: Fluid, speed: float, usable: Usable
) -> list[tuple[str, str, str, str]]:
    """Return (name, value, verdict, level) of tau, Mach number and grid Reynolds number.

    With a speed the grid Reynolds number replaces the verdict on a small tau of an uncoupled fluid.
    If `speed` is 0, of tau only. `speed` is the largest speed in lattice units. For a
    non-Newtonian fluid tau and the grid Reynolds number are those of its least viscosity. Advice
    names the collisions that are `usable`.
    """
    cs2, nu = float(case.lattice.cs2), least_viscosity(fluid)
    tau = tau_from_viscosity(nu, cs2)
    decided = speed and tau < NEAR and case.single_fluid
    verdict = ("near 1/2: see grid Reynolds", "good") if decided else judge_tau(tau)
    found = [("tau", f"{tau:.6g}", *verdict)]
    if speed:
        number, grid = mach(speed, cs2), reynolds(nu, 1, speed)
        found.append(("Mach", f"{number:.4g}", *judge_mach(number)))
        found.append(("grid Reynolds", f"{grid:.4g}", *stability(case, fluid, speed, usable)))
    return found

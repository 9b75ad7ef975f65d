"""The stability of a case: the measured flows that are similar to it, and the verdict."""

from mpilbm.core.units import mach, reynolds
from mpilbm.model.case import Case, Fluid
from mpilbm.model.limits import Usable, judge_stability, measured


def stability(
    case: Case, fluid: Fluid, speed: float, usable: Usable = lambda lattice, collision: True
) -> tuple[str, str]:
    """Return a sentence on the stability of a fluid at the speed, and good, fair or poor."""
    collision = fluid.collision
    model = collision.closure
    closure = f"+{model.name}" if model and not model.limits() else ""
    name = f"{collision.name}{closure}{' of coupled fluids' if case.coupling else ''}"
    numbers = reynolds(least_viscosity(fluid), 1, speed), mach(speed, float(case.lattice.cs2))
    sentence, level = judge_stability(
        *numbers, case.lattice.name, name, flows(case), _least_stable_end(case), usable
    )
    known = measured().get(case.lattice.name, {"collisions": {}})["collisions"]
    if name in known and _is_changed(fluid):
        sentence += "; measured with the default parameters"
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


def _is_changed(fluid: Fluid) -> bool:
    """Whether a parameter of the collision, except the closure, differs from its default."""
    collision = fluid.collision
    fields = type(collision).model_fields.items()
    required = {key: getattr(collision, key) for key, field in fields if field.is_required()}
    usual = type(collision)(**required)
    return collision.model_dump(exclude={"closure"}) != usual.model_dump(exclude={"closure"})


def flows(case: Case) -> tuple[str, ...]:
    """Return the flows of judge_stability that are similar to the case, from its boundaries."""
    faces = case.boundaries
    through = [face for face in faces if face.face_flow.crosses]
    walls = [face for face in faces if face not in through]
    walls += [body.boundary for body in case.bodies]
    moving = any(any(getattr(wall, "velocity", None) or ()) for wall in walls)
    found = ("cavity",) * moving + ("body",) * bool(through or case.bodies)
    return found or (("walls",) if faces else ("vortex",))

"""The stability of a case: which measured flows are like it, and what they say."""

from mpilbm.units import mach, reynolds
from mpilbm.verdicts.limits import MARGIN, judge_stability, measured


def stability(case, fluid, speed: float) -> tuple[str, str]:
    """Verdict and level of the stability of a fluid at its largest speed, see judge_stability."""
    collision = fluid.collision
    closure = f"+{collision.closure.name}" if collision.closure else ""
    name = f"{collision.name}{closure}{' of coupled fluids' if case.coupling else ''}"
    numbers = reynolds(fluid.viscosity, 1, speed), mach(speed, float(case.lattice.cs2))
    sentence, level = judge_stability(*numbers, case.lattice.name, name, flows(case))
    ends = [face for face in case.boundaries if goes_through(face)]
    end = min(ends, key=lambda face: face.fails_from, default=None)
    if end and numbers[0] > MARGIN * end.fails_from:
        sentence = sentence.replace("fine: ", "possibly unstable: ", 1)
        sentence += (f"; measured with 'equilibrium' as inlet and outlet: with '{end.name}' flows "
                     f"failed from {end.fails_from:g} on, on D2Q9")  # fmt: skip
        level = "fair" if level == "good" else level
    known = measured().get(case.lattice.name, {"collisions": {}})["collisions"]
    if name in known and _is_changed(collision):
        sentence += "; measured with the default parameters"
    return sentence, level


def _is_changed(collision) -> bool:
    """Whether a parameter other than the closure, and with a default, has another value."""
    fields = type(collision).model_fields.items()
    required = {key: getattr(collision, key) for key, field in fields if field.is_required()}
    usual = type(collision)(**required)
    return collision.model_dump(exclude={"closure"}) != usual.model_dump(exclude={"closure"})


def flows(case) -> tuple[str, ...]:
    """Flows of judge_stability that are like that of a case, by its boundaries."""
    faces = case.boundaries
    through = [face for face in faces if goes_through(face)]
    walls = [face for face in faces if face not in through]
    walls += [body.boundary for body in case.bodies]
    moving = any(any(getattr(wall, "velocity", None) or ()) for wall in walls)
    found = ("cavity",) * moving + ("body",) * bool(through or case.bodies)
    return found or (("walls",) if faces else ("vortex",))


def goes_through(face) -> bool:
    """Whether fluid crosses a face of the box: all in the cell but walls that slide."""
    velocity = getattr(face, "velocity", None)
    slides = velocity and not any(velocity["xyz".index(place[0])] for place in face.where)
    return face.wall_at == "node" and not slides

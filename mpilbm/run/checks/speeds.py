"""Detects a flow that is faster than its given velocities explain.

Between given velocities a flow is hardly faster than the largest of them: up to 1.5 times between
plates and 2.1 times in a square duct with a uniform inlet, and faster by continuity where an outlet
is narrower than the inlets. Beyond twice the largest given speed, or MARGIN times these values if
that is more, the scheme is usually unstable, often at an outlet.

No given velocity bounds the speed, and nothing is checked, where a force, a difference of pressure,
buoyancy or a coupling drives the flow. Where fluid passes bodies, the passages between them may be
narrow, and a single cylinder doubles the speed: there only the cells at outlets are checked, unless
most of them are solid.
"""

from mpilbm.case.case import Case
from mpilbm.case.velocity_bounds import fastest, initial_ranges, largest_speed
from mpilbm.core.formulas.values import CellValue
from mpilbm.model.findings import WARNING, Finding, either
from mpilbm.outputs import Context
from mpilbm.parallel import on_root
from mpilbm.physics.motions import moving
from mpilbm.run.checks import OTHER, RAISE, Alarm, Repeated, place
from mpilbm.run.checks.outlets import FaceCells, Outlets, Through, faces_of, inlets, still

TWICE = 2.0  # times the largest given speed
PROFILE = (1.0, 1.5, 2.1)  # largest velocity / its mean: walls or inlets across 0, 1, 2 axes
MARGIN = 1.2
ROUNDED = 1.001  # of an initial speed
NEARLY = 0.95  # of the largest speed: such an outlet is named in place of the fastest cell
HALF = 0.5  # share of fluid cells below which an outlet is the surface of a porous body
LEVELS = (1.0, 2.0)  # of the speed, relative to its limit: levels of the warning


def bounded(case: Case) -> bool:
    """Whether given velocities alone drive the flow, and bound its speed."""
    densities = {getattr(each, "rho", None) for each in case.boundaries} - {None}
    driven = (
        not case.single_fluid
        or any(case.force_on(number) for number in range(len(case.fluids)))
        or case.buoyancy is not None
        or any(each.joins_faces for each in case.boundaries)
        or len(densities) > 1
        or not all(isinstance(rho, int | float) for rho in densities)
    )
    return not driven and any(fastest(case, each, shape)[0] for _, each, shape in case.conditions())


class Speeds:
    """Compares the speed with the largest given one, and reports a finding.

    `every`: see Repeated. The initial velocities count as given. Created on all ranks.
    """

    def __init__(self, context: Context, every: int):
        self._context, self._case, self._every = context, context.case, every
        self._outlets = Outlets(context, every)
        self._bounded = bounded(self._case)
        self._given, self._key = largest_speed(self._case)
        if self._bounded and context.first_step:  # a restart
            ranges = on_root(context.comm, initial_ranges, self._case)
            self._given, self._key = largest_speed(self._case, ranges)
        self._timed = bool(moving(self._case)) or any(
            CellValue("u", value, self._case.dimensions).timed
            for _, each, _ in self._case.conditions()
            for value in getattr(each, "velocity", None) or ()
        )
        self._alarm = Alarm(context, LEVELS)
        self._limit: float | None = None  # of the speed, relative to that given
        self.forget(context.first_step == 0)

    def forget(self, initial: bool = True) -> None:
        """Begin again, because the state was replaced; `initial`: it counts as given."""
        self._initial, self._repeated = initial, Repeated(self._every)
        self._outlets.forget()

    def check(self, step: int) -> None:
        """Compare the flow at this step; collective. Totals.check comes before."""
        if not (self._bounded or self._outlets.faces):
            return
        context = self._context
        speeds, _ = context.solver.speeds()
        plane = int(speeds.argmax())
        parts = context.comm.allgather((float(speeds[plane]), context.slab.begin + plane))
        speed, plane = max(parts, key=lambda part: part[0])
        if self._initial:
            self._initial = False
            if speed > ROUNDED * self._given:
                self._given, self._key = speed, self._case.fluids[0].initial.key_of_velocity
            return
        at_outlets = self._outlets.check(step, max(context.totals.fastest, self._given))
        if self._bounded and (step <= self._case.run.last or not self._timed):
            self._compare(step, (speed, plane), at_outlets)

    def _compare(self, step: int, most: tuple[float, int], at_outlets: dict[str, Through]) -> None:
        """Compare the speed in the box, or that at outlets, with its limit; collective."""
        limit = self._limit = self._limit or self._allowed()
        judged = {face: flow for face, flow in at_outlets.items() if self._is_open(face)}
        face = max(judged, key=lambda each: judged[each].speed, default="")
        anywhere = not (self._case.bodies and inlets(self._case))
        speed, node, outlet = most[0] if anywhere else 0.0, None, ""
        if judged and judged[face].speed >= NEARLY * speed:
            speed, node, *_ = judged[face]
            outlet = self._outlets.names[face]
        if not self._repeated.update(step, speed > limit * self._given):
            return
        ratio = speed / self._given

        def describe() -> Finding:
            return self._finding(step, ratio, speed, node or self._node(most[1]), outlet)

        self._alarm.update(ratio / limit, describe)

    def _allowed(self) -> float:
        """The limit of the speed, relative to that given; collective."""
        faces, cells = [face for face, _ in inlets(self._case)], self._outlets.cells
        if not faces:
            return TWICE
        walls = {face[0] for face, each in faces_of(self._case) if not each.face_flow.crosses}
        held = walls | {face[0] for face in faces}  # axes across which the velocity is given
        leaves = [face for face in self._outlets.faces if self._is_open(face)]
        across = max(len(held - {face[0]}) for face in leaves or faces)
        given = FaceCells(self._context, faces)
        area = sum(given.area(face) for face in faces)
        narrowing = area / min([area, *map(cells.area, leaves)]) if area else 1.0
        return max(TWICE, MARGIN * PROFILE[across] * narrowing)

    def _is_open(self, face: str) -> bool:
        return self._outlets.cells.fluid[face] >= HALF

    def _node(self, plane: int) -> tuple[int, int, int]:
        """The node of the fastest cell of a plane of the box; collective."""
        context, found = self._context, None
        local = plane - context.slab.begin
        if 0 <= local < context.slab.planes:
            u = context.solver.fields(("u",), local, local + 1)["u"][0].astype("float64")
            squares = (u**2).sum(axis=-1)
            row, k = divmod(int(squares.argmax()), squares.shape[1])
            found = plane, row, int(self._case.lattice.x(plane, row, k))
        return next(each for each in context.comm.allgather(found) if each is not None)

    def _finding(
        self, step: int, ratio: float, speed: float, node: tuple[int, ...], outlet: str
    ) -> Finding:
        """`outlet`: the condition at the outlet at which the node is, or ""."""
        here = place(self._case, node)
        fix = either(here.fix, RAISE, OTHER, *still(self._case, outlet))
        return Finding(
            WARNING,
            here.key or self._key,
            f"by step {step} the flow is {ratio:.3g} times as fast as the largest given speed, "
            f"{self._given:.3g} cells/step of {self._key}: {speed:.3g} in {here.text}, and too "
            f"fast first at step {self._repeated.first}: it is unstable, or sound stays in the "
            f"box; {fix}",
        )

"""Force and torque on each body over time, as rows of a CSV file."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.errors import CaseError
from mpilbm.core.quantity import AREA, LENGTH, VELOCITY
from mpilbm.core.registry import register
from mpilbm.core.units import FORCE, TORQUE, counted, lattice_text
from mpilbm.model.findings import NOTE, Finding
from mpilbm.outputs import Context, Output, Watched
from mpilbm.outputs.body_motion import BodyMotion, MotionInStep, motion_of
from mpilbm.outputs.coefficients import Coefficients, Series, columns, directions, width
from mpilbm.outputs.core import body_problems, chosen_bodies, parts_problems
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.outputs.paired_samples import Floats, mean_of
from mpilbm.parallel import on_root
from mpilbm.physics.boundaries import in_cells
from mpilbm.physics.lattices import AXES
from mpilbm.storage.csv_log import Rows

ROW_BYTES = 512
Moved = dict[int, MotionInStep]  # by number of the body


@register("outputs", "body_forces")
class BodyForces(Output):
    """Force, torque and coefficients of each body as rows of `forces_<label>.csv`.

        c_d = 2 F.e / (U^2 A), c_l = 2 F.l / (U^2 A), c_s = 2 F.s / (U^2 A)       (c_s in 3D only)

    U: |velocity|, e: its direction, l: that of `lift`, without its part along e; without `lift`
    that of z, or y for a flow along z; in 2D the other axis. s = l x e: for a flow along x and a
    lift along z the side force is along y. The names of the columns contain the directions, as in
    "c_l +z". A: `area`, or without it the projected area of the shape across the flow, for a
    velocity along an axis; in 2D the length in its place.

    The force on a body at rest is the mean of those in the steps before and after, which act at
    step - 1/2 and step + 1/2 (see paired_samples.py). At step 0, and for a body that moves, it is
    that at step + 1/2. It is computed by momentum exchange (see solver/momentum_exchange.py); the
    pressure is that of rho - 1. The faces of a `pressure_jump` do not change it. The torque is
    taken about `centre`, by default the centre of the shape, or of the box for a mask. In lattice
    units; with [units] the same quantities in SI follow.

    summary.json and the last lines of a run have the mean of each coefficient over the last half of
    the time, with its standard error (see outputs/core/averages.py) and A. `run.steady.of` may name
    this output: it compares c_d of all its bodies, and the largest change or error counts.

    `split` adds the parts of the force: pressure; viscous = force - pressure; and stress, the
    viscous part computed as an integral of the stress over the surface.
    [Toelke & Krafczyk 2008, section 6.2]
    """

    body: tuple[str, ...] = Field(
        (), description="labels of bodies; empty: all bodies", examples=[["ball"]]
    )
    velocity: Annotated[tuple[float, ...] | None, VELOCITY] = Field(
        None, description="velocity of the flow, for c_d, c_l and c_s", examples=[[0.05, 0]]
    )
    length: Annotated[float | None, LENGTH] = Field(
        None,
        gt=0,
        description="2D: width across the flow; without it: that of the body",
        examples=[20],
    )
    area: Annotated[float | None, AREA] = Field(
        None,
        gt=0,
        description="3D: area across the flow; without it: that of the body",
        examples=[314],
    )
    lift: tuple[float, ...] | None = Field(
        None,
        description="direction of c_l, upwards; without it: z, or y for a flow along z; in 2D "
        "across velocity",
        examples=[[0, 0, 1]],
    )
    centre: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None,
        description="point about which the torque is taken; without it: the centre of the shape, "
        "or of a body with a rotation a point of the axis",
        examples=[[32, 32]],
    )
    split: bool = Field(False, description="also write the pressure and viscous parts of the force")
    files: ClassVar[tuple[str, ...]] = ("forces_<label>.csv",)
    free: ClassVar[tuple[str, ...]] = ("body",)
    watchable: ClassVar[bool] = True

    def contents(self, case: Case) -> dict[tuple[str, ...], dict[str, Any]]:
        """The contents for each body, which do not depend on the other bodies."""
        (definition,) = super().contents(case).values()
        labels = (case.bodies[number].label for number in self.bodies(case))
        return {(f"forces_{label}.csv",): definition for label in labels}

    def bodies(self, case: Case) -> tuple[int, ...]:
        """The named bodies, or all."""
        return chosen_bodies(case, self.body)

    def lengths(self, case: Case) -> dict[str, float]:
        """L of the Strouhal number f L / U of each body in cells, where it is known.

        `length`; without it, in 2D the width of the body across the flow, in 3D its smallest side
        across the flow.
        """
        bodies = (case.bodies[number] for number in self.bodies(case) if self.velocity)
        found = {
            body.label: self.length or width(case, body.shape, self.velocity) for body in bodies
        }
        return {label: length for label, length in found.items() if length}

    @property
    def splits(self) -> bool:
        """Whether `split` is set."""
        return self.split

    def problems(self, case: Case) -> list[str]:
        """Unknown labels, bodies that two outputs name, vectors of another dimension, …"""
        D = case.dimensions
        found = self._body_problems(case)
        if self.split:
            found += parts_problems(case, self.bodies(case), "split")
        if any(boundary.joins_faces for boundary in case.boundaries):
            labels = (case.bodies[k].label for k in self.bodies(case) if k in in_cells(case))
            found += [
                f"body: the force on '{label}', which acts in cells, is not known in a box with a "
                "pressure jump; drive the flow with [force], or use a boundary with links"
                for label in labels
            ]
        steady = case.run.steady
        first = next((each for each in case.outputs if each.name == self.name), self)
        if steady and steady.of == self.name and first is self and not self.velocity:
            found.append('velocity: missing; run.steady.of = "body_forces" compares c_d; give both')
        for name in ("velocity", "lift", "centre"):
            vector = getattr(self, name)
            if vector is not None and len(vector) != D:
                found.append(f"{name}: found {counted(len(vector), 'component')}; allowed: {D}")
        return found + self._reference_problems("length" if D == 2 else "area", case)

    def warnings(self, case: Case) -> list[Finding]:
        """Also, in 3D without `lift`, the directions of the coefficients."""
        found = super().warnings(case)
        if case.dimensions == 3 and self.velocity and not self.lift:
            drag, lift, side = (name.split()[1] for name in columns(self.velocity))
            along = f"drag is along {drag}, lift along {lift}, side force along {side}"
            sentence = f"missing; {along}; give the direction upwards if it is another one"
            found.append(Finding(NOTE, "lift", sentence))
        return found

    def _body_problems(self, case: Case) -> list[str]:
        found = body_problems(case, self.body)
        same = [other.bodies(case) for other in case.outputs if isinstance(other, BodyForces)]
        for number in self.bodies(case):
            if sum(number in bodies for bodies in same) > 1:
                label = case.bodies[number].label
                found.append(f"body: '{label}' is in two of these outputs; keep one")
        return found

    def _reference_problems(self, size: str, case: Case) -> list[str]:
        D = case.dimensions
        other = "area" if size == "length" else "length"
        found = []
        if getattr(self, other) is not None:
            found.append(f"{other}: has no meaning in {D}D; give {size}")
        if self.velocity is None and getattr(self, size) is not None:
            found.append(f"{size}: has no meaning without velocity; give both, or remove {size}")
        elif self.velocity is not None and getattr(self, size) is None:
            found += self._size_problems(size, case)
        if self.velocity is not None and not any(self.velocity):
            found.append("velocity: is zero; c_d, c_l and c_s need that of the flow")
        elif self.velocity and self.lift and len(self.lift) == len(self.velocity):
            across = directions(self.velocity, self.lift)[1]
            problem = "points along velocity; give a direction that is not parallel to it"
            found += [] if np.isfinite(across).all() else [f"lift: {problem}"]
        return found

    def _size_problems(self, size: str, case: Case) -> list[str]:
        """Why the size across the flow does not follow from the bodies."""
        if sum(v != 0 for v in self.velocity or ()) > 1:
            why = "the velocity has more than one component"
            fix = f"give {size}, which is computed for a flow along an axis only"
            return [f"{size}: missing, and {why}; {fix}"]
        masks = [case.bodies[k].label for k in self.bodies(case) if case.bodies[k].shape is None]
        if masks:
            why = f"body '{masks[0]}' is a mask, whose size is not computed"
            return [f"{size}: missing, and {why}; give {size}"]
        return []

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row for each body each time."""
        return times * ROW_BYTES * (2 if self.split else 1) * len(self.bodies(case))

    def size(self, case: Case, number: int) -> float:
        """A of a body: the area across the flow, in 2D the length; 0 if it is not needed.

        Raises CaseError if it does not follow from the shape.
        """
        given, shape = self.length or self.area, case.bodies[number].shape
        if given or not self.velocity:
            return given or 0.0
        axis = int(np.abs(self.velocity).argmax())
        found = shape.frontal_area(axis, case.domain)
        if not found:
            label, key = case.bodies[number].label, "length" if case.dimensions == 2 else "area"
            raise CaseError(
                f"body '{label}' has no projected area across the flow; give {key}",
                f"output.{case.outputs.index(self)}.{key}",
                case.path,
            )
        return found

    def coefficients(self, case: Case, number: int) -> Coefficients:
        """The coefficients of a body."""
        return Coefficients(self.velocity or (), self.lift, self.size(case, number))

    def watched(self, context: Context) -> Watched:
        """c_d of each body, the mean of two steps."""
        case, bodies, D = context.case, self.bodies(context.case), context.case.dimensions
        of = on_root(context.comm, lambda: [self.coefficients(case, number) for number in bodies])
        samples = context.forces

        def c_d() -> list[float]:
            forces = mean_of(samples.around())()
            if forces is None:
                return []
            pairs = zip(of, map(case.needs.weighed.index, bodies), strict=True)
            return [each.values(forces[place][:D])[0] for each, place in pairs]

        names = tuple(f"c_d_{case.bodies[number].label}" for number in bodies)
        return Watched(names, c_d, samples.take)

    def ahead(self, case: Case) -> bool:
        """If there is a body at rest."""
        return any(case.bodies[number].motion is None for number in self.bodies(case))

    def open(self, context: Context) -> "BodyForcesWriter":
        """Creates the files; after a restart keeps their rows up to the first step."""
        return BodyForcesWriter(self, context)


class BodyForcesWriter(TableWriter):
    """Rank 0 writes the files; the device of each rank sums over the links of its planes."""

    def __init__(self, output: BodyForces, context: Context):
        super().__init__(context)
        self.output, self.D = output, context.case.dimensions
        self.turns = AXES if self.D == 3 else "z"  # axes of the torque
        self.parts = ("pressure", "viscous", "stress") if output.split else ()
        # dimensions of the force and of the torque; in 2D per length
        self.force, self.torque = ((m + self.D - 3, *rest) for m, *rest in (FORCE, TORQUE))
        self.files: dict[int, Rows] = {}  # by number of the body, on rank 0
        self.series: dict[int, Series] = {}  # of the coefficients; likewise
        self.motions: dict[int, BodyMotion | None] = {}  # likewise
        on_root(context.comm, self._open)

    def header(self, number: int) -> list[str]:
        """Names of a body's columns with their units; rho_0 = 1. In SI, in 2D of 1 m of it."""
        axes, force, torque = AXES[: self.D], lattice_text(self.force), lattice_text(self.torque)
        names = [f"force_{a} ({force})" for a in axes]
        names += [f"torque_{a} ({torque})" for a in self.turns]
        velocity, lift = self.output.velocity, self.output.lift
        names += columns(velocity, lift) if velocity else []
        names += [f"{part}_{a} ({force})" for part in self.parts for a in axes]
        if self.case.units:
            per = "_per_m" if self.D == 2 else ""
            names += ["time_s", *(f"force_{a}_N{per}" for a in axes)]
            names += [f"torque_{a}_N_m{per}" for a in self.turns]
            names += [f"{part}_{a}_N{per}" for part in self.parts for a in axes]
        motion = self.motions[number]
        return ["step", "time (steps)", *names, *(motion.header() if motion else ())]

    def _open(self) -> None:
        bodies = moving.bodies if (moving := self.context.solver.moving) else None
        for number in self.output.bodies(self.case):
            path = self.context.directory / f"forces_{self.case.bodies[number].label}.csv"
            self.motions[number] = motion_of(self.case, number, bodies)
            header = self.header(number)
            rows = self.files[number] = Rows(path, header, self.context.first_step)
            self.keep(rows)
            coefficients = self.output.coefficients(self.case, number)
            self.series[number] = Series.of_rows(coefficients, header, rows.kept)

    def prepare(self, step: int) -> None:
        """Enqueue the sums of the step before one at which rows are written; collective."""
        self.context.forces.take()

    def start(self, step: int) -> Callable[[], tuple[list[Floats | None], Moved]]:
        """Enqueue the sums over the links of this rank."""
        samples = self.context.forces.around()
        moved = {k: motion.during(step) for k, motion in self.motions.items() if motion}
        return lambda: ([sample() for sample in samples], moved)

    def add_rows(self, step: int, found: tuple[list[Floats], Moved]) -> None:
        """Add a row for each body, from the sums of one step or two."""
        totals, moved = found
        weighed = self.case.needs.weighed
        for number, file in self.files.items():
            motion, place = moved.get(number), weighed.index(number)
            used = totals[-1:] if motion else totals
            time = step + 0.5 if len(used) == 1 else step
            total = np.mean([each[place] for each in used], axis=0)
            file.add(step, self._row(step, time, number, total, motion))

    def _row(
        self, step: int, time: float, number: int, total: np.ndarray, motion: MotionInStep | None
    ) -> list[float]:
        """The row of a body from its sums: force, torque, pressure and stress."""
        D, turning = self.D, len(self.turns)
        ends = np.cumsum([D, turning, D])
        force, torque, pressure, stress = np.split(total[: 3 * D + turning], ends)
        if motion:
            force, torque = motion.corrected(force, torque, self.output.centre)
        else:
            torque = torque - self._moment(number, force)
        parts = np.concatenate([pressure, force - pressure, stress] if self.parts else [[]])
        coefficients = self.series[number].add(step, force)
        row = [time, *force, *torque, *coefficients, *parts]
        if units := self.case.units:
            row += [self.time(time), *units.to_si(force, self.force)]
            row += [*units.to_si(torque, self.torque), *units.to_si(parts, self.force)]
        return row + (motion.row if motion else [])

    def _moment(self, number: int, force: np.ndarray) -> np.ndarray:
        """The torque about the origin of a force at the centre."""
        r, f = (np.append(v, [0.0] * (3 - self.D)) for v in (self._centre(number), force))
        return np.cross(r, f)[-1 if self.D == 2 else 0 :]

    def _centre(self, number: int) -> np.ndarray:
        """The point about which torque is taken; infinite shapes are cut at the box."""
        shape, size = self.case.bodies[number].shape, np.array(self.case.domain.size, float)
        if self.output.centre is not None:
            return np.array(self.output.centre)
        bounds = shape.bounds() if shape else (0 * size, size)
        lower, upper = (np.array(bound, float) for bound in bounds)
        lower = np.where(np.isfinite(lower), lower, 0)
        return (lower + np.where(np.isfinite(upper), upper, size)) / 2

    def close(self) -> None:
        """Close the files, and report the means of the coefficients."""
        super().close()
        for number, series in self.series.items() if self.output.velocity else ():
            label = self.case.bodies[number].label
            self.context.results.setdefault("coefficients", {})[label] = series.record
            self.context.closing.append(f"{label}: {series}")

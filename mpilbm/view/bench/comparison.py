"""Runs a case in variants and in a reference, and compares results, speed and memory."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError, MpilbmError, NonFiniteError
from mpilbm.core.registry import make, names
from mpilbm.parallel import Communicator, on_root
from mpilbm.run.simulation import Simulation
from mpilbm.solver import memory_plan
from mpilbm.view.bench import DOUBLE, PRECISIONS
from mpilbm.view.bench.measure import timed, worth_timing

DYNAMIC_PRESSURE = 1.5  # rho_0 u^2/2 as a density: u^2 / (2 c_s^2) with c_s^2 = 1/3


@dataclass
class Sample:
    """Fields of the box (on rank 0, else {}), solid cells, and sums over the box, at a step."""

    fields: dict[str, np.ndarray]
    solid: np.ndarray | None
    sums: dict[str, float]


@dataclass
class Results:
    """What a variant has computed: samples by step, and forces (samples, bodies, D)."""

    samples: dict[int, Sample] = field(default_factory=dict)
    forces: list[Any] = field(default_factory=list)


def deviations(found: Results, reference: Results, step: int) -> dict[str, float | None]:
    """Deviations at a step, each relative to a scale of the reference; on rank 0.

    u              rms of the deviation / rms of the velocity
    rho            rms of the deviation / standard deviation of rho, or / (3/2) u_rms^2, the dynamic
                   pressure, if this is larger
    other fields   rms of the deviation / standard deviation
    forces         rms of the deviation / rms of the forces; of all samples, at the last step only
    mass, energy   |sum - sum of the reference| / sum of the reference
    momentum       |sum - sum of the reference| / (mass u_rms)

    Fields are compared in fluid cells. None: the scale is 0, there is nothing to compare.
    """
    mine, exact = found.samples[step], reference.samples[step]
    assert exact.solid is not None, "rank 0 has the fields"
    fluid = ~exact.solid
    speed = _rms(exact.fields["u"], fluid)
    figures: dict[str, float | None] = {}
    for name, values in exact.fields.items():
        scale = speed if name == "u" else _spread(values, fluid)
        if name == "rho":
            scale = max(scale, DYNAMIC_PRESSURE * speed**2)
        figures[name] = _ratio(_rms(mine.fields[name], fluid, values), scale)
    if reference.forces and step == max(reference.samples):
        forces = np.array(reference.forces)
        error = np.array(found.forces) - forces
        figures["forces"] = _ratio(sqrt(np.mean(error**2)), sqrt(np.mean(forces**2)))
    apart = {name: mine.sums[name] - value for name, value in exact.sums.items()}
    momentum = sqrt(sum(apart.get(f"momentum_{x}", 0.0) ** 2 for x in "xyz"))
    mass, energy = exact.sums["mass"], exact.sums["kinetic_energy"]
    return figures | {
        "mass": _ratio(abs(apart["mass"]), mass),
        "momentum": _ratio(momentum, mass * speed),
        "energy": _ratio(abs(apart["kinetic_energy"]), energy),
    }


def _ratio(value: float, scale: float) -> float | None:
    return value / scale if scale else None


def _rms(values: np.ndarray, fluid: np.ndarray, other: np.ndarray | None = None) -> float:
    """Root mean square of a field, or of its difference to another, plane by plane in double."""
    total = 0.0
    for plane in range(len(values)):
        here = values[plane][fluid[plane]].astype(float)
        if other is not None:
            here -= other[plane][fluid[plane]]
        total += float(np.sum(here**2))
    return sqrt(total / np.count_nonzero(fluid))


def _spread(values: np.ndarray, fluid: np.ndarray) -> float:
    """Standard deviation of a scalar field; rms of the deviation from the mean of a vector."""
    inside = values[fluid].astype(float)
    return float(np.sqrt(np.sum(inside.var(axis=0))))


PRECISION, LAYOUT, COLLISION = KINDS = ("precision", "layout", "collision")
REFERENCE = PRECISIONS[DOUBLE]
MEASURED = ("body_forces",)  # outputs that the shortened case keeps: the forces are compared


class Variant(NamedTuple):
    """A case that differs from the user's in one part, of the kind `kind`."""

    kind: str
    tables: dict[str, Any]


def shortened(tables: dict[str, Any], steps: int, layout: str) -> dict[str, Any]:
    """The tables of a case that runs `steps` steps without files; `layout` replaces "auto"."""
    short = copy.deepcopy(tables)
    short["run"] = {"steps": steps}
    short["output"] = [each for each in short.get("output", ()) if each["name"] in MEASURED]
    if layout:
        short["layout"] = _named(short.get("layout"), layout)
    return short


def variants(short: dict[str, Any], kind: str) -> list[Variant]:
    """The variants of a kind; the case itself is one of them."""
    if kind == PRECISION:
        parts = [{"precision": _formats(short, each)} for each in PRECISIONS.values()]
    elif kind == LAYOUT:
        given = short.get("layout")
        every = [name for name in names("layouts") if name != "auto"]
        parts = [{"layout": _named(given, name)} for name in every]
    else:
        parts = [_with_collision(short, name) for name in names("collisions")]
    return [Variant(kind, short | part) for part in parts]


def _formats(short: dict[str, Any], formats: dict[str, str]) -> dict[str, Any]:
    """The table of the number formats; fast intrinsics exist in float32 only."""
    table = short.get("precision", {}) | formats
    if formats["compute"] != "float32":
        table.pop("intrinsics", None)
    return table


def _named(given: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """The given table if it has this name, with its options; else the defaults of the name."""
    return given if given and given.get("name") == name else {"name": name}


def _with_collision(short: dict[str, Any], name: str) -> dict[str, Any]:
    """The parts of the case that hold collisions: its own table, or one of each fluid."""
    fluids: Any = short.get("fluid")
    if not isinstance(fluids, Sequence):
        return {"collision": _named(short.get("collision"), name)}
    return {"fluid": [each | {"collision": _named(each.get("collision"), name)} for each in fluids]}


SECONDS = 10.0  # of the case itself, without a given number of steps
LEAST_STEPS, REPEATS = 100, 3
FORCE_SAMPLES = 10  # in the second half of the steps
DERIVED = ("vorticity", "q_criterion")  # fields that are computed from u


class Comparison:
    """The shortened case and the results of its reference, on the ranks of `comm`.

    `tables` and `path` are those of the case. The reference runs in float64; without `steps` the
    case runs as many steps as take about SECONDS, at most its own number. `layout` is that of the
    case, also where it is "auto". Collective; raises CaseError or NonFiniteError if the case or
    its reference cannot run.
    """

    def __init__(self, tables: dict[str, Any], path: Path, comm: Communicator, steps: int | None):
        self.path, self.comm = path, comm
        own = parse_case(tables, path)
        self.last, self.automatic = own.run.steps, own.layout.automatic
        with self.opened(shortened(tables, own.run.steps, "")) as sim:
            self.layout = sim.case.layout.name
            self.device = sim.context.solver.device.description
            self.steps = min(steps or _affordable(sim), self.last)
        self.short = shortened(tables, self.steps, self.layout)
        self.reference = Results()
        self.own_figures: dict[str, Any] = {}  # of the case, which is a variant of each kind
        try:
            exact = self.short | {"precision": _formats(self.short, REFERENCE)}
            self.reference_row = self._run(exact, self.reference)
        except MpilbmError as error:
            kind = NonFiniteError if isinstance(error, NonFiniteError) else CaseError
            fix = "a smaller box may fit (--set domain.size=…)"
            problem = f"the reference in float64 cannot run; {fix}"
            raise kind([problem, *error.problems]) from error

    def opened(self, tables: dict[str, Any]) -> Simulation:
        """A simulation of these tables."""
        return Simulation(parse_case(tables, self.path), self.comm)

    def variants(self, kind: str) -> list[Variant]:
        """The variants of a kind; the case itself is one of them.

        If "auto" took a layout for some collisions only, it chooses again for each other collision.
        """
        found = variants(self.short, kind)
        if kind != COLLISION or not self.automatic or make("layouts", self.layout).populations:
            return found
        own, auto = self._names(self.short), {"layout": {"name": "auto"}}
        return [
            each if self._names(each.tables) == own else Variant(kind, each.tables | auto)
            for each in found
        ]

    @property
    def sampled(self) -> tuple[int, ...]:
        """The steps at which fields are compared: the middle, and the last."""
        return tuple(sorted({max(1, self.steps // 2), self.steps}))

    def row(self, variant: Variant) -> dict[str, Any]:
        """Names, figures and deviations of a variant, or its `problem`. Collective."""
        names, own = self._names(variant.tables), self._names(self.short)
        row = {"kind": variant.kind, "own": names == own, **names}
        if names != own:
            return row | self._measured(variant.tables)
        self.own_figures = self.own_figures or self._measured(variant.tables)
        return row | self.own_figures

    def _measured(self, tables: dict[str, Any]) -> dict[str, Any]:
        """Figures and deviations of a variant, or its `problem`. Collective."""
        results = Results()
        try:
            figures = self._run(tables, results)
        except CaseError as error:
            found = (problem.removeprefix(f"{self.path}: ") for problem in error.problems)
            return {"problem": f"cannot run: {'; '.join(found)}"}
        except NonFiniteError as error:
            return {"problem": f"became unstable: not finite at step {error.step}"}

        def compare() -> dict[str, dict[str, float | None]]:
            steps = {"half": self.sampled[0], "end": self.steps}
            return {when: deviations(results, self.reference, step) for when, step in steps.items()}

        return figures | on_root(self.comm, compare)

    def _names(self, tables: dict[str, Any]) -> dict[str, str]:
        """What the table shows of a variant; also of one that is not allowed."""
        formats = {"compute": "float32", "storage": "float32"} | tables.get("precision", {})
        fluids: Any = tables.get("fluid")
        parts = fluids if isinstance(fluids, list) else [tables]
        collisions = dict.fromkeys(part.get("collision", {}).get("name", "bgk") for part in parts)
        return {
            "layout": tables["layout"]["name"],
            "collision": ", ".join(collisions),
            "compute": formats["compute"],
            "storage": formats["storage"],
        }

    def _run(self, tables: dict[str, Any], results: Results) -> dict[str, Any]:
        """Run a shortened case into `results`, and return its speed and memory. Collective."""
        with self.opened(tables) as sim:
            weighed = bool(sim.case.needs.weighed)
            every = max(1, self.steps // (2 * FORCE_SAMPLES))
            for end in self.sampled:
                while sim.step < end:
                    sim.run(min(every, end - sim.step))
                    if weighed and 2 * sim.step >= self.steps:
                        results.forces.append(list(sim.forces().values()))
                results.samples[end] = _sample(sim)
            return {"layout": sim.case.layout.name} | _speed(sim)


def _affordable(sim: Simulation) -> int:
    """The number of steps that take about SECONDS."""
    solver, comm = sim.context.solver, sim.comm
    steps = worth_timing(solver, comm)
    return max(LEAST_STEPS, round(SECONDS * steps / timed(solver, comm, steps)))


def _sample(sim: Simulation) -> Sample:
    names = [name for name in sim.context.solver.field_names if name not in DERIVED]
    fields = {name: sim.field(name) for name in sorted(names, key=lambda name: name != "u")}
    known = {name: values for name, values in fields.items() if values is not None}
    return Sample(known, sim.field("solid"), sim.sums())


def _speed(sim: Simulation) -> dict[str, Any]:
    """GLUPS (10^9 updates of fluid cells a second, the median), and bytes of all devices."""
    solver, comm = sim.context.solver, sim.comm
    steps = worth_timing(solver, comm)
    seconds = [timed(solver, comm, steps) for _ in range(REPEATS)]
    geometry = solver.geometry
    fluid = sum(comm.allgather(int(geometry.fluid_cells.sum())))
    rates = [fluid * steps / each / 1e9 for each in seconds]
    of = solver.case, solver.slab, geometry.lists, geometry.around
    return {
        "glups": median(rates),
        "spread": [min(rates), max(rates)],
        "bytes": sum(comm.allgather(memory_plan.slab_bytes(*of))),
    }

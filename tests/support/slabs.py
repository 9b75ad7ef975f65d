"""Run a case on N slabs in one process, one thread per slab, and join the results."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.parallel import slabs as domain
from mpilbm.solids import build
from mpilbm.solver.solver import Solver
from support.local_world import LocalWorld

PRECISIONS = {
    "half": {"compute": "float32", "storage": "float16"},
    "single": {"compute": "float32", "storage": "float32"},
    "mixed_moments": {"compute": "float32", "storage": "mixed"},
    "mixed": {"compute": "float64", "storage": "float32"},
    "double": {"compute": "float64", "storage": "float64"},
}


class Cluster:
    """All slabs of a case; each method runs on all of them concurrently, as on ranks."""

    def __init__(self, tables: dict, slabs: int = 1, open_device=None, world=None):
        case = parse_case(tables, "test.toml")
        world, program = world or LocalWorld(slabs, patience=20), codegen.generate(case)
        self.case, self.solvers, self.shapes = case, [], []
        for slab in domain.split(case.shape, slabs, case.domain.periodic[-1]):
            device = (open_device or make("backends", "cpu").open)()
            exchanger = world.exchanger(slab.rank, slab, device)
            self.shapes.append(build.build(case, slab))
            self.solvers.append(Solver(case, slab, self.shapes[-1], device, exchanger, program))
        if slabs > 1 and all(s.faster for s in self.solvers):
            self.each(lambda s: s.take_two_steps(s.faster))

    def each(self, work) -> list:
        if len(self.solvers) == 1:  # many tests call this for each step
            return [work(self.solvers[0])]
        with ThreadPoolExecutor(len(self.solvers)) as pool:
            return list(pool.map(work, self.solvers))

    def start(self):
        self.each(lambda s: s.initialise())
        return self

    def run(self, steps: int):
        self.each(lambda s: [s.step() for _ in range(steps)])
        return self

    def state(self) -> np.ndarray:
        """Post-collision populations, (planes, Q, rows, nx), zero in solids."""

        def read(s):
            state = s.read_state("", 0, s.slab.planes)
            return np.where(s.solid(0, s.slab.planes)[:, None], 0, state)

        return np.concatenate(self.each(read))

    def fields(self, *names) -> dict:
        found = self.each(lambda s: s.fields(names, 0, s.slab.planes))
        return {name: np.concatenate([f[name] for f in found]) for name in names}

    def sums(self) -> tuple:
        found = self.each(lambda s: s.sums())
        return found[0][0], np.concatenate([planes for _, planes in found])

    def kept(self) -> dict:
        """The state that boundaries keep, {label: (cells, values)}."""
        found = [
            self.each(lambda s, k=k: (s.entry_states[k].cells, s.entry_states[k].read()))
            for k in range(len(self.solvers[0].entry_states))
        ]
        labels = [state.label for state in self.solvers[0].entry_states]
        joined = ([np.concatenate(part) for part in zip(*parts, strict=True)] for parts in found)
        return dict(zip(labels, joined, strict=True))

    def restore(self, state: np.ndarray, step: int, kept=()):
        def write(s):
            s.write_state("", 0, state[s.slab.begin : s.slab.end], step)
            s.resume(step)
            for each in s.entry_states:
                cells, values = kept[each.label]
                each.write(values[np.isin(cells, each.cells)])

        self.each(write)
        return self


FIELDS = ("rho", "u", "vorticity", "q_criterion")


def assert_same(expected: Cluster, found: Cluster, fields=FIELDS) -> None:
    """All that a solver shows, in every bit."""
    assert np.array_equal(found.state(), expected.state())
    values = found.fields(*fields)
    for name, each in expected.fields(*fields).items():
        assert np.array_equal(values[name], each), name
    (columns, sums), (expected_columns, expected_sums) = found.sums(), expected.sums()
    assert columns == expected_columns
    assert np.array_equal(sums, expected_sums)


def box(lattice: str, size=None, **tables) -> dict:
    """Tables of a small case with odd, unequal sides; it is periodic by default."""
    dimensions = make("lattices", lattice).D
    size = list(size or (5, 4, 13)[-dimensions:])
    waves = {2: ["sin(2*pi*y/ny)", "cos(2*pi*x/nx)"]}
    waves[3] = ["sin(2*pi*z/nz)", "cos(2*pi*x/nx)", "sin(2*pi*(x/nx+y/ny))"]
    case = {
        "lattice": {"name": lattice},
        "domain": {"size": size, "periodic": [True] * dimensions},
        "fluid": {"viscosity": 0.03},
        "initial": {
            "rho": "1 + 0.01*cos(2*pi*x/nx)",
            "u": [f"0.05*{wave}" for wave in waves[dimensions]],
        },
        "run": {"steps": 7},
    }
    case |= tables
    size, closed = case["domain"]["size"], case["domain"].get("periodic", [False] * dimensions)
    case["domain"] = case["domain"] | {"size": fitting_size(lattice, size, closed)}
    return case


def fitting_size(lattice: str, size, periodic) -> list[int]:
    """The sides, rounded up to even numbers where a staggered lattice requires it."""
    even = make("lattices", lattice).staggered
    kinds = zip(size, periodic, strict=True)
    return [n + n % 2 * (even and (closed or not k)) for k, (n, closed) in enumerate(kinds)]

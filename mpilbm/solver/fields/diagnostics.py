"""Macroscopic fields of some planes of a slab, and sums over each plane."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.layouts.grid import velocity_grid
from mpilbm.physics.lattices import AXES
from mpilbm.physics.sloped import CELLS, FARTHEST, SUM
from mpilbm.solver.fields.plane_sums import PlaneSums, Read
from mpilbm.solver.fields.velocity_blocks import VelocityBlocks
from mpilbm.solver.flow_state import FlowState
from mpilbm.solver.memory_plan import velocity_bytes

DERIVED = {"vorticity", "q_criterion"}  # fields that need the velocity of neighbour cells


def field_names(case: Case) -> tuple[str, ...]:
    """The fields of a flow."""
    return ("rho", "u", "vorticity", "q_criterion", *case.own_fields)


def components(name: str, D: int) -> tuple[int, ...]:
    """The shape of a field in a cell."""
    return {"u": (D,), "vorticity": (3,) if D == 3 else ()}.get(name, ())


class Diagnostics:
    """rho, u, vorticity, Q criterion and the fields of the coupling; sums over each plane.

    Fields and sums that need the velocity of neighbour cells are computed in blocks of planes, see
    VelocityBlocks. `names`: those of the fields. `middles`: of each scalar the argument of kernels
    from which they compute its largest distance, see physics/sloped.py.
    """

    def __init__(self, state: FlowState):
        context, case = state.context, state.context.case
        self.state, self.context = state, context
        self.device, self.lattice, coupling = context.device, case.lattice, case.coupling
        self.planes, self.rows, self.nx = size = context.slab.planes, *context.slab.shape[1:]
        self.dtype = np.dtype(context.program.compute)
        self.sloped = case.sloped
        self.grid = velocity_grid(self.lattice, context.grid.ghost, *size, len(self.sloped))
        self._counted = (CELLS,) if case.scalars else ()  # the cells, for means of scalars
        self.outputs = case.own_fields
        self.masses = coupling.masses(case) if coupling else {}
        self.rest = coupling.rest(case) if coupling else float(case.precision.offset)
        self.names = field_names(case)
        self.middles = {each.middle: 0.0 for each in self.sloped if each.middle}
        self._of_values = [name for each in self.sloped for name in each.values]
        self.forget()

    def watch(self, middles: Mapping[str, float]) -> None:
        """Set numbers of `middles`; before the first sums."""
        self.middles |= middles

    def forget(self) -> None:
        """Compute all values again when they are needed, because the populations were replaced."""
        self._first: tuple[int, Read] | None = None  # step, sums of the kernel `velocity`
        if "blocks" in vars(self):
            self.blocks.forget()

    @property
    def spare_bytes(self) -> int:
        """Free bytes of the device, less those of arrays that are allocated at first use."""
        used = "blocks" in vars(self)
        wanted = 0 if used else velocity_bytes(self.context.case, self.planes)
        return max(0, self.device.memory()[0] // self.device.sharing - wanted)

    @cached_property
    def blocks(self) -> VelocityBlocks:
        """The velocity and the fields of `sloped`, a block of planes at a time."""
        return VelocityBlocks(self.state, self._velocity, self.middles)

    def fields(self, names: Iterable[str], begin: int, end: int) -> dict[str, np.ndarray]:
        """The named fields of planes begin..end.

        Collective at the first call in a step for fields that need the velocity of neighbours.
        """
        names = tuple(names)
        self.prepare(names)
        arrays = self.arrays(names, end - begin)
        self.enqueue(arrays, begin, end)
        flat = {name: self.device.download(array) for name, array in arrays.items()}
        found = self.shaped(flat, begin, end)
        return {name: found[name] for name in names}

    def prepare(self, names: Iterable[str]) -> None:
        """Compute what `enqueue` needs for these fields; collective."""
        self.state.look()
        if DERIVED & set(names):
            self.blocks.prepare()

    def arrays(self, names: Iterable[str], planes: int) -> dict[str, Array]:
        """Device arrays that `enqueue` fills for these names."""
        made = self.made_for(names)
        return {n: self.device.allocate(planes * self.values(n), self.dtype) for n in made}

    @staticmethod
    def made_for(names: Iterable[str]) -> tuple[str, ...]:
        """The names of the fields that are computed for `names`: rho and u are always both."""
        names = tuple(names)
        pair = ("rho", "u") if {"rho", "u"} & set(names) else ()
        return (*pair, *(name for name in names if name not in pair))

    def components(self, name: str) -> tuple[int, ...]:
        """The shape of a field in a cell."""
        return components(name, self.lattice.D)

    def values(self, name: str) -> int:
        """Numbers of a field in a plane."""
        return self.rows * self.nx * prod(self.components(name))

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """Fill these arrays with the fields of planes begin..end, in the bulk stream."""
        enqueue = self.state.enqueue
        if "rho" in arrays:
            enqueue("fields", begin, end, rho_out=arrays["rho"], u_out=arrays["u"])
        for name in arrays.keys() & set(self.outputs):
            enqueue(f"output_{self.outputs.index(name)}", begin, end, derived_out=arrays[name])
        derived = sorted(arrays.keys() & DERIVED)
        for first, after, number in self.blocks.blocks(begin, end) if derived else ():
            given = {"u_first": number, **self.blocks.arguments}
            for name in derived:
                values = self.values(name)
                part = arrays[name][(first - begin) * values : (after - begin) * values]
                enqueue(name, first, after, derived_out=part, **given)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """Host copies of the arrays as fields, with rho = 1 and u = 0 in solid cells."""
        found = {
            name: values.reshape(end - begin, self.rows, self.nx, *self.components(name))
            for name, values in flat.items()
        }
        if self.context.grid.over == "nodes":  # whose kernels skip solid cells
            solid = self.state.solid(begin, end)
            for name in found.keys() & {"rho", "u"}:
                found[name][solid] = float(name == "rho")
        return found

    def speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest |u| of finite fluid cells of each plane, and the number of the others;
        collective.
        """
        end, first = self.lattice.D + 2, self._first_sums()
        return np.sqrt(first[:, end]), first[:, end + 1]

    def scalars(self) -> tuple[np.ndarray, np.ndarray]:
        """For each plane and scalar the sum, and the largest distance from its value in `middles`.

        Of finite cells, (planes, scalars) each; a sum is not finite if one of its values is not.
        Collective.
        """
        names = self._of_values
        values = self._first_sums()[:, -len(names) :]
        sums, farthest = (
            values[:, [k for k, name in enumerate(names) if name.startswith(part)]]
            for part in (SUM, FARTHEST)
        )
        return sums, farthest

    def mass(self) -> np.ndarray:
        """The mass of each plane, float64 (planes,), from the sums of `speeds`; collective."""
        return self._mass(self._first_sums()[:, 0])

    def _mass(self, stored: np.ndarray) -> np.ndarray:
        """The mass of each plane from the sum of its stored densities."""
        return (stored + self.rest * self.context.geometry.fluid_cells) * self.lattice.volume

    def _first_sums(self) -> np.ndarray:
        """The sums of the kernel `velocity` at this step, (planes, columns); collective."""
        if self._first is None or self._first[0] != self.context.clock.steps:
            self.state.look()
            self.blocks.for_sums()
            self._keep_first()
        assert self._first is not None
        return self._first[1]()

    def _keep_first(self) -> Read:
        """Start the copy of the sums of `velocity`, which are valid for the rest of this step."""
        copy = self._velocity.start()
        self._first = self.context.clock.steps, copy
        return copy

    @cached_property
    def _velocity(self) -> PlaneSums:
        speed, end = self.lattice.D + 2, self.lattice.D + 4 + len(self.masses)
        maxima = [largest for each in self.sloped for largest in each.maxima]
        largest = [speed, *(end + k for k, each in enumerate(maxima) if each)]
        return PlaneSums(self.state, "velocity", end + len(self._of_values), largest)

    @cached_property
    def _slopes(self) -> PlaneSums:
        given = self.blocks.arguments
        return PlaneSums(self.state, "enstrophy", 1 + len(self.sloped), **given)

    def start_change(self) -> Callable[[], np.ndarray]:
        """Enqueue sums over each plane of (u - u')^2 and u^2, u' being u at the previous call,
        first 0.

        The result returns the sums, (planes, 2) in double.
        """
        self.state.look()
        for begin, end, number in self.blocks.copies(self._before):
            self._change.enqueue(begin, end, u_first=number)
        return self._change.start()

    @cached_property
    def _before(self) -> Array:
        """The velocity at the previous call of `start_change`."""
        self.device.require(self.grid.count * self.dtype.itemsize, "the velocity for run.steady")
        return self.device.allocate(self.grid.count, self.dtype)

    @cached_property
    def _change(self) -> PlaneSums:
        given = {"u": self.blocks.u, "u_before": self._before, **self.grid.arguments()}
        return PlaneSums(self.state, "change", 2, **given)

    def start_flux(self) -> Callable[[], np.ndarray]:
        """Enqueue sums over the fluid cells of each plane of rho u, u and |u|.

        The result returns them, (planes, 2 D + 1) in double.
        """
        self.state.look()
        self._flux.enqueue(0, self.planes)
        return self._flux.start()

    @cached_property
    def _flux(self) -> PlaneSums:
        given: dict[str, Any] = {**self.grid.arguments()}
        return PlaneSums(self.state, "flux", 2 * self.lattice.D + 1, **given)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of sums."""
        momentum = [f"momentum_{axis}" for axis in AXES[: self.lattice.D]]
        names = ("mass", *momentum, "kinetic_energy", "enstrophy", "max_speed", "nonfinite")
        gradients = (each.gradient for each in self.sloped)
        return (*names, *self.masses, *gradients, *self._of_values, *self._counted)

    def start_sums(self) -> Callable[[], np.ndarray]:
        """Enqueue the sums over each plane; the result returns them, (planes, columns) in double.

        mass = sum rho; kinetic_energy = sum rho u.u / 2; enstrophy = sum omega.omega / 2, over the
        fluid cells, times the volume of a cell; the largest |u|, and the number of cells that are
        not finite. For coupled fluids also the mass of each; for coupled fluids and scalars the
        columns that `sloped.combined` replaces. Collective; to call the result is not.
        """
        self.state.look()
        self.blocks.prepare()
        for begin, end, number in self.blocks.blocks(0, self.planes):
            self._slopes.enqueue(begin, end, u_first=number)
        return partial(self._complete, self._keep_first(), self._slopes.start())

    def _complete(self, velocity: Read, slope: Read) -> np.ndarray:
        D, volume, slopes = self.lattice.D, self.lattice.volume, slope()
        cells = self.context.geometry.fluid_cells[:, None]
        ends = np.cumsum([1, D + 1, 1, 1, len(self.masses)])
        stored, moments, square, nonfinite, masses, values = np.split(velocity(), ends, axis=1)
        rest = np.array([list(self.masses.values())])
        parts = [
            self._mass(stored[:, 0])[:, None],
            volume * moments,
            volume * slopes[:, :1],
            np.sqrt(square),
            nonfinite,
            volume * (masses + rest * cells),
            volume * (slopes[:, 1:] * [each.factor for each in self.sloped]),
            values,
        ]
        return np.concatenate([*parts, *[cells] * len(self._counted)], axis=1)

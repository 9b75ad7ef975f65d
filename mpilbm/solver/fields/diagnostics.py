"""Macroscopic fields of some planes of a slab, and sums over each plane."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from math import prod

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.layouts.grid import velocity_grid
from mpilbm.physics.lattices import AXES
from mpilbm.physics.sloped import CELLS, FARTHEST, SUM
from mpilbm.solver.fields.host_copies import HostCopy
from mpilbm.solver.fields.plane_sums import PlaneSums
from mpilbm.solver.fields.velocity_blocks import VelocityBlocks
from mpilbm.solver.memory.plan import velocity_bytes
from mpilbm.solver.state import FlowState, StateLaunch

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
    VelocityBlocks. `middles`: of each scalar the argument of kernels from which they compute its
    largest distance, see physics/sloped.py.
    """

    def __init__(self, state: FlowState):
        context, case = state.context, state.context.case
        self.state, self.context = state, context
        self.device, self.lattice, coupling = context.device, case.lattice, case.coupling
        self.planes, self.rows, self.nx = context.slab.planes, *context.slab.shape[1:]
        self.dtype = np.dtype(context.program.compute)
        ghost = context.grid.ghost
        self.sloped = case.sloped
        size = self.planes, self.rows, self.nx
        self.grid = velocity_grid(self.lattice, ghost, *size, len(self.sloped))
        self.outputs = case.own_fields
        self.masses = coupling.masses(case) if coupling else {}
        self.rest = coupling.rest(case) if coupling else float(case.precision.offset)
        self.names = field_names(case)
        self.middles = {each.middle: 0.0 for each in self.sloped if each.middle}
        self.forget()

    def watch(self, middles: Mapping[str, float]) -> None:
        """Set numbers of `middles`; before the first sums."""
        self.middles |= middles

    def forget(self) -> None:
        """Compute all values again when they are needed, because the populations were replaced."""
        self._speed_step: int | None = None  # of the sums
        self._speed: HostCopy | None = None
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
        return VelocityBlocks(self.state, self._speed_sums, self.middles)

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
        self.state.coupled.look()
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
        if "rho" in arrays:
            made = {"rho_out": arrays["rho"], "u_out": arrays["u"]}
            self.state.enqueue("fields", begin, end, **made)
        for name in arrays.keys() & set(self.outputs):
            given = {"derived_out": arrays[name]}
            self.state.enqueue(f"output_{self.outputs.index(name)}", begin, end, **given)
        derived = sorted(arrays.keys() & DERIVED)
        for first, after, given in self.blocks.blocks(begin, end) if derived else ():
            for name in derived:
                values = self.values(name)
                part = arrays[name][(first - begin) * values : (after - begin) * values]
                self.state.enqueue(name, first, after, derived_out=part, **given)

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
        """For each plane the largest |u| of finite fluid cells, and the number of the other ones.

        Collective.
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
        pairs = [
            values[:, [k for k, name in enumerate(names) if name.startswith(part)]]
            for part in (SUM, FARTHEST)
        ]
        return pairs[0], pairs[1]

    def mass(self) -> np.ndarray:
        """The mass of each plane, from the sums that `speeds` uses; collective."""
        return self._mass(self._first_sums()[:, 0])

    def _mass(self, stored: np.ndarray) -> np.ndarray:
        """The mass of each plane from the sum of its stored densities."""
        return (stored + self.rest * self.context.geometry.fluid_cells) * self.lattice.volume

    def _first_sums(self) -> np.ndarray:
        """The sums of the kernel `velocity` at this step, (planes, columns); collective."""
        copy = self._speed
        if copy is None or self._speed_step != self.context.clock.steps:
            self.state.coupled.look()
            self.blocks.for_sums()
            copy = self._keep_speed()
        return self._speed_sums.shaped(copy)

    def _keep_speed(self) -> HostCopy:
        """Start the copy of the sums of `velocity`, which are valid for the rest of this step."""
        self._speed, self._speed_step = self._speed_sums.start(), self.context.clock.steps
        return self._speed

    @cached_property
    def _speed_sums(self) -> PlaneSums:
        columns = 4 + self.lattice.D + len(self.masses) + len(self._of_values)
        return PlaneSums(self.state, columns, self._largest)

    @cached_property
    def _slope_sums(self) -> PlaneSums:
        return PlaneSums(self.state, 1 + len(self.sloped))

    @cached_property
    def _slopes(self) -> StateLaunch:
        given = {"u": self.blocks.u, **self.blocks.grid.arguments()}
        return StateLaunch(self.state, "enstrophy", **given, **self._slope_sums.arguments)

    @property
    def _largest(self) -> list[int]:
        """The columns of `velocity` that are maxima."""
        speed, end = self.lattice.D + 2, 4 + self.lattice.D + len(self.masses)
        maxima = [largest for each in self.sloped for largest in each.maxima]
        return [speed, *(end + k for k, largest in enumerate(maxima) if largest)]

    @property
    def _of_values(self) -> list[str]:
        """The columns of `velocity` for the values of the fields `sloped`."""
        return [name for each in self.sloped for name in each.values]

    def start_change(self) -> Callable[[], np.ndarray]:
        """Enqueue sums over each plane of (u - u')^2 and u^2, u' being u at the previous call.

        At the first call u' = 0. The result returns the sums, (planes, 2) in double.
        """
        self.state.coupled.look()
        for begin, end, u_first in self.blocks.copies(self._before):
            self._change(begin, end, u_first=u_first)
        return partial(self._change_sums.shaped, self._change_sums.start())

    @cached_property
    def _change_sums(self) -> PlaneSums:
        return PlaneSums(self.state, 2)

    @cached_property
    def _before(self) -> Array:
        """The velocity at the previous call of `start_change`."""
        self.device.require(self.grid.count * self.dtype.itemsize, "the velocity for run.steady")
        return self.device.allocate(self.grid.count, self.dtype)

    @cached_property
    def _change(self) -> StateLaunch:
        given = {"u": self.blocks.u, "u_before": self._before, **self.grid.arguments()}
        return StateLaunch(self.state, "change", **given, **self._change_sums.arguments)

    def start_flux(self) -> Callable[[], np.ndarray]:
        """Enqueue sums over the fluid cells of each plane of the momentum rho u, of u, and of |u|.

        The result returns them, (planes, 2 D + 1) in double.
        """
        self.state.coupled.look()
        self._flux(0, self.planes)
        return partial(self._flux_sums.shaped, self._flux_sums.start())

    @cached_property
    def _flux_sums(self) -> PlaneSums:
        return PlaneSums(self.state, 2 * self.lattice.D + 1)

    @cached_property
    def _flux(self) -> StateLaunch:
        given = self.grid.arguments() | self._flux_sums.arguments
        return StateLaunch(self.state, "flux", **given)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of sums."""
        momentum = [f"momentum_{axis}" for axis in AXES[: self.lattice.D]]
        names = ("mass", *momentum, "kinetic_energy", "enstrophy", "max_speed", "nonfinite")
        cells = (CELLS,) if self.context.case.scalars else ()
        gradients = (each.gradient for each in self.sloped)
        return (*names, *self.masses, *gradients, *self._of_values, *cells)

    def start_sums(self) -> Callable[[], np.ndarray]:
        """Enqueue the sums over each plane; the result returns them, (planes, columns) in double.

        mass = sum rho; kinetic_energy = sum rho u.u / 2; enstrophy = sum omega.omega / 2, over the
        fluid cells, times the volume of a cell; the largest |u|, and the number of cells that are
        not finite. For coupled fluids also the mass of each fluid; for coupled fluids and scalars
        the columns that `sloped.combined` replaces. Collective; to call the result is not.
        """
        self.state.coupled.look()
        self.blocks.prepare()
        for begin, end, arguments in self.blocks.blocks(0, self.planes):
            self._slopes(begin, end, u_first=arguments["u_first"])
        return partial(self._complete, self._keep_speed(), self._slope_sums.start())

    def _complete(self, velocity: HostCopy, slope: HostCopy) -> np.ndarray:
        D, volume = self.lattice.D, self.lattice.volume
        first, slopes = self._speed_sums.shaped(velocity), self._slope_sums.shaped(slope)
        enstrophy, gradients = slopes[:, :1], slopes[:, 1:] * [s.factor for s in self.sloped]
        end, cells = D + 4, self.context.geometry.fluid_cells[:, None]
        first, values = np.split(first, [end + len(self.masses)], axis=1)
        mass = self._mass(first[:, 0])[:, None]
        masses = first[:, end:] + np.array([list(self.masses.values())]) * cells
        speed = np.sqrt(first[:, D + 2 : D + 3])
        moments = (volume * part for part in (first[:, 1 : D + 2], enstrophy))
        parts = (
            mass,
            *moments,
            speed,
            first[:, D + 3 : end],
            volume * masses,
            volume * gradients,
            values,
        )
        counted = (cells,) if self.context.case.scalars else ()
        return np.concatenate([*parts, *counted], axis=1)

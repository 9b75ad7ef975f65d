"""Macroscopic fields of some planes of a slab, and sums over each plane."""

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from math import prod

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.halo import Exchange
from mpilbm.layouts.grid import velocity_grid
from mpilbm.physics import interface_length
from mpilbm.physics.lattices import AXES
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.fields.host_copies import HostCopy
from mpilbm.solver.fields.plane_sums import PlaneSums
from mpilbm.solver.state import FlowState


class Diagnostics:
    """rho, u, vorticity, Q criterion and the fields of the coupling; sums over each plane.

    Fields that need the velocity of neighbour cells read a velocity array. It is allocated at first
    use, and its edge planes are exchanged like those of populations.
    """

    def __init__(self, state: FlowState):
        context, case = state.context, state.context.case
        self.state, self.context = state, context
        self.device, self.lattice, coupling = context.device, case.lattice, case.coupling
        self.planes, self.rows, self.nx = context.slab.planes, *context.slab.shape[1:]
        self.dtype = np.dtype(context.program.compute)
        ghost = context.grid.ghost
        self.jumps = coupling.jumps(case) if coupling else ()
        size = self.planes, self.rows, self.nx
        self.grid = velocity_grid(self.lattice, ghost, *size, len(self.jumps))
        self.outputs = coupling.outputs(case) if coupling else ()
        self.masses = coupling.masses(case) if coupling else {}
        self.rest = coupling.rest(case) if coupling else float(case.precision.offset)
        self.names = ("rho", "u", "vorticity", "q_criterion", *self.outputs)
        self.forget()

    def forget(self) -> None:
        """Compute all values again when they are needed, because the populations were replaced."""
        self._velocity_step: int | None = None  # of the velocity array and of the sums
        self._velocity: HostCopy | None = None

    @property
    def spare_bytes(self) -> int:
        """Free bytes of the device, less those of the velocity array if it is not allocated yet."""
        wanted = 0 if "velocity" in vars(self) else self.velocity_bytes
        return max(0, self.device.memory()[0] // self.device.sharing - wanted)

    @property
    def velocity_bytes(self) -> int:
        """Bytes of the velocity field."""
        return self.grid.count * self.dtype.itemsize

    @cached_property
    def velocity(self) -> Array:
        """The velocity of the slab with its ghost planes."""
        self.device.require(self.velocity_bytes, "the velocity field")
        return self.device.allocate(self.grid.count, self.dtype)

    @cached_property
    def exchange(self) -> Exchange:
        """The exchange of the velocity's edge planes that finite differences read."""
        kernels = self.context.program.kernels
        reads = (*kernels["q_criterion"].reads, *kernels["enstrophy"].reads)
        plan = exchange_plan(self.grid, (), reads)
        return self.context.exchanger.prepare(plan, [self.velocity])

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
        if {"vorticity", "q_criterion"} & set(names):
            self._velocity_sums()

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
        D = self.lattice.D
        return {"u": (D,), "vorticity": (3,) if D == 3 else ()}.get(name, ())

    def values(self, name: str) -> int:
        """Numbers of a field in a plane."""
        return self.rows * self.nx * prod(self.components(name))

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """Fill these arrays with the fields of planes begin..end, in the bulk stream."""
        if "rho" in arrays:
            made = {"rho_out": arrays["rho"], "u_out": arrays["u"]}
            self.state.enqueue("fields", begin, end, **made)
        for name in arrays.keys() - {"rho", "u"}:
            given = {"derived_out": arrays[name]}
            if name in self.outputs:
                self.state.enqueue(f"output_{self.outputs.index(name)}", begin, end, **given)
                continue
            given |= {"u": self.velocity, **self.grid.arguments()}
            self.state.enqueue(name, begin, end, **given)

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

    def _velocity_sums(self) -> HostCopy:
        """Compute the velocity of all cells and ghost planes; sums per plane.

        Collective at the first call in a step; later calls in the same step return the same sums.
        """
        if self._velocity is None or self._velocity_step != self.context.clock.steps:
            self.state.coupled.look()
            self._velocity = self._speed_sums.start()
            self._exchange_velocity()
            self._velocity_step = self.context.clock.steps
        return self._velocity

    def _exchange_velocity(self) -> None:
        """Enqueue the exchange of the velocity's edge planes in the order of the bulk stream."""
        bulk = self.context.bulk
        self.exchange.start(bulk.record())
        self.exchange.wait(bulk.flush)
        arrived = self.exchange.arrival()
        if arrived is not None:
            bulk.wait(arrived)

    def speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """For each plane the largest |u| of finite fluid cells, and the number of the other ones.

        Collective.
        """
        end, first = self.lattice.D + 2, self._speed_sums.shaped(self._velocity_sums())
        return np.sqrt(first[:, end]), first[:, end + 1]

    @cached_property
    def _speed_sums(self) -> PlaneSums:
        columns = 4 + self.lattice.D + len(self.masses) + len(interface_length.ends(self.jumps))
        given = {"largest": self._largest, "u": self.velocity}
        return PlaneSums(self.state, self.grid, "velocity", columns, **given)

    @cached_property
    def _slope_sums(self) -> PlaneSums:
        columns = 1 + len(self.jumps)
        return PlaneSums(self.state, self.grid, "enstrophy", columns, u=self.velocity)

    @property
    def _largest(self) -> list[int]:
        """The columns of `velocity` that are maxima."""
        speed, end = self.lattice.D + 2, 4 + self.lattice.D + len(self.masses)
        return [speed, *range(end, end + len(interface_length.ends(self.jumps)))]

    def start_change(self) -> Callable[[], np.ndarray]:
        """Enqueue sums over each plane of (u - u')^2 and u^2, u' being u at the previous call.

        At the first call u' = 0. The result returns the sums, (planes, 2) in double.
        """
        sums = self._change_sums
        return partial(sums.shaped, sums.start())

    @cached_property
    def _change_sums(self) -> PlaneSums:
        self.device.require(self.velocity_bytes, "the velocity for run.steady")
        before = self.device.allocate(self.grid.count, self.dtype)
        return PlaneSums(self.state, self.grid, "change", 2, u_before=before)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of sums."""
        momentum = [f"momentum_{axis}" for axis in AXES[: self.lattice.D]]
        names = ("mass", *momentum, "kinetic_energy", "enstrophy", "max_speed", "nonfinite")
        lengths = interface_length.gradients(self.jumps), interface_length.ends(self.jumps)
        return (*names, *self.masses, *lengths[0], *lengths[1])

    def start_sums(self) -> Callable[[], np.ndarray]:
        """Enqueue the sums over each plane; the result returns them, (planes, columns) in double.

        mass = sum rho; kinetic_energy = sum rho u.u / 2; enstrophy = sum omega.omega / 2, over the
        fluid cells, times the volume of a cell; the largest |u|, and the number of cells that are
        not finite. For coupled fluids also the mass of each fluid, and the columns from which
        `interface_length` computes a length. Collective; to call the result is not.
        """
        velocity = self._velocity_sums()
        return partial(self._complete, velocity, self._slope_sums.start())

    def _complete(self, velocity: HostCopy, slope: HostCopy) -> np.ndarray:
        D, volume = self.lattice.D, self.lattice.volume
        first, slopes = self._speed_sums.shaped(velocity), self._slope_sums.shaped(slope)
        enstrophy, gradients = slopes[:, :1], slopes[:, 1:] / [jump or 1.0 for jump in self.jumps]
        end, cells = D + 4, self.context.geometry.fluid_cells[:, None]
        first, ends = np.split(first, [end + len(self.masses)], axis=1)
        mass = first[:, :1] + self.rest * cells
        masses = first[:, end:] + np.array([list(self.masses.values())]) * cells
        speed = np.sqrt(first[:, D + 2 : D + 3])
        whole = (volume * part for part in (mass, first[:, 1 : D + 2], enstrophy))
        parts = (*whole, speed, first[:, D + 3 : end], volume * masses, volume * gradients, ends)
        return np.concatenate(parts, axis=1)

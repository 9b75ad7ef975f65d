"""Macroscopic fields of some planes of a slab, and sums over each plane."""

from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.halo import Exchange
from mpilbm.layouts.grid import velocity_grid
from mpilbm.physics import interface_length
from mpilbm.physics.lattices import AXES
from mpilbm.solver.exchange_plan import exchange_plan
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
        self._sums = np.zeros((self.planes, 0))

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

    def on_device(self, begin: int, end: int) -> tuple[Array, Array]:
        """Rho and u of planes begin..end as device arrays; defined in fluid cells only."""
        self.prepare(("rho", "u"))
        arrays = self.arrays(("rho", "u"), end - begin)
        self.enqueue(arrays, begin, end)
        self.device.synchronize()
        return arrays["rho"], arrays["u"]

    def _velocity_sums(self) -> np.ndarray:
        """Compute the velocity of all cells and ghost planes; sums per plane (planes, columns).

        Collective at the first call in a step; later calls in the same step return the same sums.
        """
        if self._velocity_step != self.context.clock.steps:
            self.state.coupled.look()
            columns = 4 + self.lattice.D + len(self.masses) + len(interface_length.ends(self.jumps))
            self._sums = self._row_sums("velocity", columns, u=self.velocity)
            self.exchange.start()
            self.exchange.finish()
            self._velocity_step = self.context.clock.steps
        return self._sums

    def speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """For each plane the largest |u| of finite fluid cells, and the number of the other ones.

        Collective.
        """
        end, first = self.lattice.D + 2, self._velocity_sums()
        return np.sqrt(first[:, end]), first[:, end + 1]

    def _row_sums(self, name: str, columns: int, **arrays: Any) -> np.ndarray:
        """Sums over planes from a kernel that sums over rows: (planes, columns)."""
        sums = self.device.allocate(self.planes * self.rows * columns, "float64")
        arrays |= self.grid.arguments()
        self.state.over_block(name, 0, self.planes, sums=sums, **arrays)
        rows = self.device.download(sums).reshape(self.planes, self.rows, columns)
        largest = self._largest if name == "velocity" else []
        return np.stack([_over_rows(plane, largest) for plane in rows])

    @property
    def _largest(self) -> list[int]:
        """The columns of `velocity` that are maxima."""
        speed, end = self.lattice.D + 2, 4 + self.lattice.D + len(self.masses)
        return [speed, *range(end, end + len(interface_length.ends(self.jumps)))]

    def sums(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Names and (planes, columns) in double: mass, momentum, energies, max |u|, not finite.

        mass = sum rho; kinetic_energy = sum rho u.u / 2; enstrophy = sum omega.omega / 2, over the
        fluid cells, times the volume of a cell. For coupled fluids also the mass of each fluid, and
        the columns from which `interface_length` computes a length. Collective.
        """
        D, volume = self.lattice.D, self.lattice.volume
        first = self._velocity_sums()
        slopes = self._row_sums("enstrophy", 1 + len(self.jumps), u=self.velocity)
        enstrophy, gradients = slopes[:, :1], slopes[:, 1:] / [jump or 1.0 for jump in self.jumps]
        end, cells = D + 4, self.context.geometry.fluid_cells[:, None]
        first, ends = np.split(first, [end + len(self.masses)], axis=1)
        mass = first[:, :1] + self.rest * cells
        masses = first[:, end:] + np.array([list(self.masses.values())]) * cells
        momentum = [f"momentum_{axis}" for axis in AXES[:D]]
        names = ("mass", *momentum, "kinetic_energy", "enstrophy", "max_speed", "nonfinite")
        names += (
            *self.masses,
            *interface_length.gradients(self.jumps),
            *interface_length.ends(self.jumps),
        )
        speed = np.sqrt(first[:, D + 2 : D + 3])
        whole = (volume * part for part in (mass, first[:, 1 : D + 2], enstrophy))
        parts = (*whole, speed, first[:, D + 3 : end], volume * masses, volume * gradients, ends)
        return names, np.concatenate(parts, axis=1)


def _over_rows(rows: np.ndarray, largest: list[int]) -> np.ndarray:
    """The sum over the rows of one plane, or the maximum in the columns `largest`."""
    total = rows.sum(axis=0)
    total[largest] = rows[:, largest].max(axis=0)
    return total

"""Looking at a slab: macroscopic fields of some planes, and sums over all of them."""

from functools import cached_property

import numpy as np

from mpilbm.lattices import AXES
from mpilbm.layouts.grid import velocity_grid
from mpilbm.passes import exchange_plan


class Diagnostics:
    """rho, u, vorticity and Q criterion of a solver's slab, and sums of its planes.

    What needs the velocity of neighbour cells takes it from a field of its own, made at the first
    use, whose edge planes are exchanged like populations.
    """

    names = ("rho", "u", "vorticity", "q_criterion")

    def __init__(self, solver):
        self.solver, self.device, self.lattice = solver, solver.device, solver.lattice
        self.planes, self.rows, self.nx = solver.slab.planes, *solver.slab.shape[1:]
        self.dtype = np.dtype(solver.program.compute)
        self.grid = velocity_grid(
            self.lattice, solver.layout.ghost, self.planes, self.rows, self.nx
        )
        self.forget()

    def forget(self) -> None:
        """The state is another one now, whatever its step."""
        self._velocity_step = self._sums = None

    @cached_property
    def velocity(self):
        """The velocity field of the slab with its ghost planes."""
        self.device.require(self.grid.count * self.dtype.itemsize, "the velocity field")
        return self.device.allocate(self.grid.count, self.dtype)

    @cached_property
    def exchange(self):
        """The exchange of the velocity's edge planes, as differences read them."""
        kernels = self.solver.program.kernels
        plan = exchange_plan(self.grid, (), kernels["q_criterion"].reads)
        return self.solver.exchanger.prepare(plan, [self.velocity])

    def fields(self, names, begin: int, end: int) -> dict[str, np.ndarray]:
        """The named fields of planes begin..end; the first call of a step for
        what needs the velocity of neighbours is collective."""
        shape = (end - begin, self.rows, self.nx)
        found = {}
        if {"rho", "u"} & set(names):
            rho, u = self.on_device(begin, end)
            found["rho"] = self.device.download(rho).reshape(shape)
            found["rho"][self.solver.solid(begin, end)] = 1
            found["u"] = self.device.download(u).reshape(*shape, self.lattice.D)
        if "vorticity" in names:
            components = (3,) if self.lattice.D == 3 else ()
            found["vorticity"] = self._derived("vorticity", begin, end, components)
        if "q_criterion" in names:
            found["q_criterion"] = self._derived("q_criterion", begin, end)
        return {name: found[name] for name in names}

    def _derived(self, name: str, begin: int, end: int, components: tuple = ()) -> np.ndarray:
        """A field made from the velocity of neighbours."""
        self._velocity_sums()
        shape = (end - begin, self.rows, self.nx, *components)
        derived = self._block(shape)
        arrays = {"u": self.velocity, "derived_out": derived, **self.grid.arguments()}
        self.solver.over_block(name, begin, end, **arrays)
        return self.device.download(derived).reshape(shape)

    def on_device(self, begin: int, end: int) -> tuple:
        """Rho and u of planes begin..end as arrays of the device; of the fluid cells alone."""
        shape = (end - begin, self.rows, self.nx)
        rho, u = self._block(shape), self._block((*shape, self.lattice.D))
        self.solver.over_block("fields", begin, end, rho_out=rho, u_out=u)
        return rho, u

    def _block(self, shape):
        return self.device.allocate(int(np.prod(shape)), self.dtype)

    def _velocity_sums(self) -> np.ndarray:
        """Velocity of all cells, ghost planes included; sums per plane (planes, columns).

        Once a step: later calls for the same step find it done and talk to nobody.
        """
        if self._velocity_step != self.solver.steps:
            self._sums = self._row_sums("velocity", 4 + self.lattice.D, u=self.velocity)
            self.exchange.start()
            self.exchange.finish()
            self._velocity_step = self.solver.steps
        return self._sums

    def _row_sums(self, name: str, columns: int, **arrays) -> np.ndarray:
        """Row sums of a kernel, added row by row: (planes, columns)."""
        sums = self.device.allocate(self.planes * self.rows * columns, "float64")
        arrays |= self.grid.arguments()
        self.solver.over_block(name, 0, self.planes, sums=sums, **arrays)
        rows = self.device.download(sums).reshape(self.planes, self.rows, columns)
        return np.stack([_over_rows(plane, name, self.lattice.D) for plane in rows])

    def sums(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Names and (planes, columns) in double: mass, momentum, energies, max |u|, not finite.

        mass = sum rho; kinetic_energy = sum rho u.u / 2; enstrophy = sum omega.omega / 2, over the
        fluid cells, times the volume of a cell. Collective.
        """
        D, volume = self.lattice.D, self.lattice.volume
        first = self._velocity_sums()
        enstrophy = self._row_sums("enstrophy", 1, u=self.velocity)
        mass = first[:, :1]
        if self.solver.case.precision.offset:
            mass = mass + self.solver.geometry.fluid_cells[:, None]
        momentum = [f"momentum_{axis}" for axis in AXES[:D]]
        names = ("mass", *momentum, "kinetic_energy", "enstrophy", "max_speed", "nonfinite")
        speed = np.sqrt(first[:, D + 2 : D + 3])
        whole = (volume * part for part in (mass, first[:, 1 : D + 2], enstrophy))
        parts = (*whole, speed, first[:, D + 3 :])
        return names, np.concatenate(parts, axis=1)


def _over_rows(rows: np.ndarray, name: str, D: int) -> np.ndarray:
    """Add the rows of one plane; the largest where the column is a maximum."""
    total = rows.sum(axis=0)
    if name == "velocity":
        total[D + 2] = rows[:, D + 2].max()
    return total

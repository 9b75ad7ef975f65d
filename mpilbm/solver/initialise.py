"""The state before step 0: from the initial fields, and from steps at a velocity that stays.

The density that belongs to a velocity settles while the velocity is held: what is too much leaves
as sound, damped by the rate at which momentum is pulled back. 2 cs k damps the longest wave that
fits the box critically, so that three steps for each cell of its longest side are enough; the last
step pulls the momentum back altogether.
[Mei, Luo, Lallemand & d'Humières 2006, Comput. Fluids 35, 855]
"""

from math import pi, sqrt

import numpy as np

from mpilbm.physics.algebra import pairs
from mpilbm.units import tau_from_viscosity


def damping(case) -> float:
    """The rate 2 cs k of the longest wave, twice the box between walls; at most 1."""
    sides = zip(case.domain.size, case.domain.periodic, strict=True)
    longest = max(n if periodic else 2 * n for n, periodic in sides)
    return min(1.0, 2 * sqrt(case.lattice.cs2) * 2 * pi / longest)


class Beginning:
    """Fills a solver: `fill`, which may fail on one slab, then `settle` on all slabs at once."""

    def __init__(self, solver):
        self.solver = solver
        self.iterate = max(fluid.initial.iterate for fluid in solver.case.fluids)
        self.held = []  # a velocity for each fluid

    def fill(self) -> None:
        """rho and u of the case -> what left the cells in the step before; talks to nobody."""
        self.solver.steps = -self.iterate
        for each in self.solver.fluids:
            if self.iterate:
                self.held.append(self._room())
            for begin, end in self.solver.blocks():
                self._fill(each, begin, end)

    def _room(self):
        solver = self.solver
        count = solver.slab.planes * self._values
        solver.device.require(count * solver.diagnostics.dtype.itemsize, "a velocity to hold")
        return solver.device.allocate(count, solver.program.compute)

    def _fill(self, each, begin: int, end: int) -> None:
        """Planes begin..end of a fluid."""
        solver, slab, initial = self.solver, self.solver.slab, each.fluid.initial
        planes = slab.begin + begin, slab.begin + end
        rho, u = initial.evaluate(slab.shape, *planes)
        fields = {"rho_initial": rho, "u_initial": u}
        if initial.non_equilibrium:
            fields["stress_initial"] = self._stress(each.fluid, rho, planes)
        arrays = {name: solver.device.upload(values) for name, values in fields.items()}
        each.over_block("initialise", begin, end, **arrays)
        if self.iterate:
            part = solver.device.upload(u.astype(solver.program.compute))
            target = self.held[each.number][begin * self._values : end * self._values]
            solver.device.copy(target, part)
            solver.device.synchronize()

    @property
    def _values(self) -> int:
        """Components of the velocity in a plane."""
        rows, nx = self.solver.slab.shape[1:]
        return self.solver.lattice.D * rows * nx

    def _stress(self, fluid, rho, planes):
        """sum_i c_i c_i (f_i - feq_i) = -2 rho cs2 tau S, with tau of the shear viscosity.

        rho is rho_0 for an equilibrium that has one; with a closure tau is that of the cell.
        [Chapman & Enskog; paper: Ferrari et al. 2023]
        """
        solver, lattice, closure = self.solver, self.solver.lattice, fluid.collision.closure
        S, nu = fluid.initial.strain(solver.slab.shape, *planes), fluid.viscosity
        if closure:
            parts = zip(pairs(lattice.D), np.moveaxis(S, -1, 0), strict=True)
            nu = nu + closure.viscosity(lattice, dict(parts))[..., None]
        (inverse,) = fluid.collision.velocity([1.0], rho)
        mass = np.broadcast_to(1 / inverse, rho.shape)[..., None]
        return -2 * float(lattice.cs2) * tau_from_viscosity(nu, lattice.cs2) * mass * S

    def settle(self) -> None:
        """What the neighbours must send, and the steps at a velocity that stays; collective."""
        solver, steps = self.solver, self.iterate
        solver.coupled.begin()
        solver.resume(-steps)
        if not steps:
            return
        rate = damping(solver.case)
        passes = [self._passes(k, rate) for k in range(solver.period)]
        last = self._passes(-1 % solver.period, 1.0)
        for step in range(-steps, 0):
            k = step % solver.period
            for each in solver.fluids:
                each.lists.run(k)
            for one in passes[k] if step < -1 else last:
                one.run()
            solver.steps += 1
            solver.lead.passed()
        solver.device.synchronize()
        solver.diagnostics.forget()
        self.held = []

    def _passes(self, k: int, rate: float) -> list:
        name, solver = f"hold_{k % self.solver.layout.parities}", self.solver
        more = {"origin": solver.first, "hold": rate}
        return [
            each.other_pass(name, k, one.exchange, u_held=self.held[each.number], **more)
            for each, one in zip(solver.fluids, solver.streaming[k], strict=True)
        ]

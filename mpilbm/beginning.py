"""The state before step 0: from the initial fields, and from steps at a velocity that stays.

The density that belongs to a velocity settles while the velocity is held: what is too much leaves
as sound, damped by the rate at which momentum is pulled back. 2 cs k damps the longest wave that
fits the box critically, so that three steps for each cell of its longest side are enough; the last
step pulls the momentum back altogether.
[Mei, Luo, Lallemand & d'Humières 2006, Comput. Fluids 35, 855]
"""

from math import pi, sqrt

from mpilbm.units import tau_from_viscosity


def damping(case) -> float:
    """The rate 2 cs k of the longest wave, twice the box between walls; at most 1."""
    sides = zip(case.domain.size, case.domain.periodic, strict=True)
    longest = max(n if periodic else 2 * n for n, periodic in sides)
    return min(1.0, 2 * sqrt(case.lattice.cs2) * 2 * pi / longest)


class Beginning:
    """Fills a solver: `fill`, which may fail on one slab, then `settle` on all slabs at once."""

    def __init__(self, solver):
        self.solver, self.initial = solver, solver.case.fluids[0].initial
        self.held = None

    def fill(self) -> None:
        """rho and u of the case -> what left the cells in the step before; talks to nobody."""
        solver, slab = self.solver, self.solver.slab
        if self.initial.iterate:
            count = slab.planes * self._values
            solver.device.require(count * solver.diagnostics.dtype.itemsize, "a velocity to hold")
            self.held = solver.device.allocate(count, solver.program.compute)
        solver.steps = -self.initial.iterate
        for begin, end in solver.blocks():
            planes = slab.begin + begin, slab.begin + end
            rho, u = self.initial.evaluate(slab.shape, *planes)
            fields = {"rho_initial": rho, "u_initial": u}
            if self.initial.non_equilibrium:
                fields["stress_initial"] = self._stress(rho, planes)
            arrays = {name: solver.device.upload(values) for name, values in fields.items()}
            solver.over_block("initialise", begin, end, **arrays)
            if self.initial.iterate:
                part = solver.device.upload(u.astype(solver.program.compute))
                target = self.held[begin * self._values : end * self._values]
                solver.device.copy(target, part)
                solver.device.synchronize()

    @property
    def _values(self) -> int:
        """Components of the velocity in a plane."""
        rows, nx = self.solver.slab.shape[1:]
        return self.solver.lattice.D * rows * nx

    def _stress(self, rho, planes):
        """sum_i c_i c_i (f_i - feq_i) = -2 rho cs2 tau S, with tau of the shear viscosity.

        [Chapman & Enskog; paper: Ferrari et al. 2023]
        """
        solver, cs2 = self.solver, float(self.solver.lattice.cs2)
        tau = tau_from_viscosity(solver.case.fluids[0].viscosity, cs2)
        return -2 * cs2 * tau * rho[..., None] * self.initial.strain(solver.slab.shape, *planes)

    def settle(self) -> None:
        """What the neighbours must send, and the steps at a velocity that stays; collective."""
        solver, steps = self.solver, self.initial.iterate
        solver.resume(-steps)
        if not steps:
            return
        rate = damping(solver.case)
        passes = [self._pass(k, rate) for k in range(solver.period)]
        last = self._pass(-1 % solver.period, 1.0)
        for step in range(-steps, 0):
            k = step % solver.period
            solver.lists.run(k)
            (passes[k] if step < -1 else last).run()
            solver.steps += 1
        solver.device.synchronize()
        solver.diagnostics.forget()
        self.held = None

    def _pass(self, k: int, rate: float):
        name = f"hold_{k % self.solver.layout.parities}"
        more = {"origin": self.solver.first, "u_held": self.held, "hold": rate}
        return self.solver.other_pass(name, k, **more)

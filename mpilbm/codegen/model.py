"""The equations of one fluid as symbols: rho and u, collision, initial state."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sympy import Rational, lambdify, symbols

from mpilbm.codegen.cell_values import CellBody, beyond_equilibrium, given
from mpilbm.codegen.program import FORCE
from mpilbm.codegen.values import KernelValues
from mpilbm.core.formulas.trees import total, where
from mpilbm.core.formulas.values import CellValue
from mpilbm.layouts import HERE, AnyGrid, Layout, Place
from mpilbm.model.case import Case
from mpilbm.model.cell import PartialCell
from mpilbm.model.expressions import (
    Expression,
    Let,
    Populations,
    Rates,
    Stress,
    Vector,
)
from mpilbm.physics.algebra import dot, expanded, pairs, populations
from mpilbm.physics.collisions import Collision, unnamed
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import AXES, Lattice

Stressed = tuple[Vector, Rates]  # second moments, and the rates of the collision with them


class Macroscopic(NamedTuple):
    """The moments of populations: the density as it is stored, rho and u; of a scalar phi alone."""

    density: Expression
    rho: Expression = None
    u: Vector = ()


@dataclass(frozen=True)
class Model:
    """A lattice with a collision, a force (or None) and the form of storage.

    offset      whether populations are stored as f_i - feq_i(rho = 1, u = 0), with density rho - 1
    unit        populations, densities and momenta are multiples of 1 / unit; it is not 1 only if
                the equilibrium is the same in any unit of mass
    force_grid  the memory of a force that is given for each cell
    body        the bodies that act in cells
    nu          the viscosity, if it differs from cell to cell
    cut         the axes along which windows have a cut, see solids/windows.py
    """

    lattice: Lattice
    collision: Collision
    forcing: Forcing | None
    offset: bool
    unit: int = 1
    force_grid: AnyGrid | None = None
    body: CellBody | None = None
    nu: CellValue | None = None
    cut: str = ""

    @property
    def any_unit(self) -> bool:
        """Whether the equilibrium is the same in any unit of mass."""
        return self.collision.equilibrium.any_unit

    @property
    def axes(self) -> str:
        """The coordinates: "xy" or "xyz"."""
        return AXES[: self.lattice.D]

    def force(self, kernel: KernelValues) -> list[Expression]:
        """The force per volume, D expressions; in cells that a body fills in part, that on the
        rest.
        """
        if self.forcing is None:
            return [0] * self.lattice.D
        values = enumerate(self.forcing.components())
        F = [self.unit * self._component(kernel, k, value) for k, value in values]
        if self.body is None:
            return F
        fluid = 1 - self.body.share(kernel)
        return [fluid * component for component in F]

    def _component(self, kernel: KernelValues, k: int, value: CellValue) -> Expression:
        """A component of the force: computed in the cell, or read from the array of all cells."""
        if value.field is None:
            return given(kernel, value, self.lattice, cut=self.cut)
        assert self.force_grid is not None  # FluidKernels gives it to such a force
        return kernel.read(value.name, FORCE, self.force_grid, Place(k, HERE))

    def rest(self, density: Expression) -> Expression:
        """rho from the sum of the stored populations."""
        return self.unit + density if self.offset else density

    def rebuilt(
        self, density: Expression, u: Vector, A: Sequence[Expression], only: Iterable[int] | None
    ) -> list[Expression]:
        """Outgoing populations from their moments, see Collision.rebuilt."""
        return self.collision.rebuilt(self.lattice, density, self.rest(density), u, A, only)

    def macroscopic(self, kernel: KernelValues, f: Populations, half: int) -> Macroscopic:
        """density, rho, u of incoming (`half` = 1) or outgoing (-1) populations.

        u = (sum_i c_i f_i + half F/2) / rho, or over rho_0.
        """
        density = kernel.let("density", total(f))
        rho = kernel.let("rho", self.rest(density))
        u = self.collision.velocity(self.momentum(kernel, f, half), rho)
        u = [kernel.let(f"u_{a}", v) for a, v in zip(self.axes, u, strict=True)]
        return Macroscopic(density, rho, u)

    def momentum(self, kernel: KernelValues, f: Populations, half: int) -> list[Expression]:
        """sum_i c_i f_i + half F/2."""
        forces = enumerate(self.force(kernel))
        return [dot([c[a] for c in self.lattice.c], f) + half * F / 2 for a, F in forces]

    @property
    def half(self) -> int:
        """1 where the velocity of the collision includes half of the force, else 0."""
        return int(self.forcing is not None and self.forcing.inside)

    def source(self, at: Macroscopic, F: Vector) -> list[Expression] | None:
        """The force term F_i at the velocity of the collision, or None."""
        if self.forcing is None:
            return None
        return self.forcing.source(self.lattice, self.collision, *at, F)

    def collide(self, kernel: KernelValues, f: Populations, rates: Rates) -> list[Expression]:
        """The Q outgoing populations of a cell, from the incoming ones."""
        at, F = self.macroscopic(kernel, f, self.half), self.force(kernel)
        share, u_body = self._body_in(kernel)
        return self.collide_at(f, at, F, rates, kernel.let, share, u_body)

    def _body_in(self, kernel: KernelValues) -> tuple[Expression | None, Vector]:
        """The share of the kernel's cell that a body fills, and the velocity of the body there."""
        if self.body is None:
            return None, ()
        return self.body.share(kernel), self.body.velocity(kernel, self.lattice)

    def taken(self, kernel: KernelValues, f: Populations, rates: Rates) -> list[Expression]:
        """The momentum that the body takes from a cell in a step, from the incoming populations."""
        assert self.body is not None  # there is such a kernel for these bodies only
        at, F = self.macroscopic(kernel, f, self.half), self.force(kernel)
        (share, u_body), source = self._body_in(kernel), self.source(at, F)
        rates = self._local(f, at, source if self.half else None, rates, kernel.let)
        return self.body.boundary.taken(self._partial(f, at, (), rates, share, kernel.let, u_body))

    def collide_at(
        self,
        f: Populations,
        at: Macroscopic,
        F: Vector,
        rates: Rates,
        let: Let = unnamed,
        share: Expression = None,
        u_body: Vector = (),
    ) -> list[Expression]:
        """The outgoing populations at a given velocity and force F.

        `let` as for Collision; `share`: that of a body in the cell, None if none acts in it;
        `u_body`: the velocity of the body there, () at rest.
        """
        source = self.source(at, F)
        inside = source if self.half else None
        rates = self._local(f, at, inside, rates, let)
        f_star = self.collision.collide(self.lattice, f, *at, inside, rates, let)
        if self.body and share is not None:
            cell = self._partial(f, at, f_star, rates, share, let, u_body)
            f_star = self.body.boundary.collided(cell)
        return f_star if self.half or source is None else _sum(f_star, source)

    def _partial(
        self,
        f: Populations,
        at: Macroscopic,
        collided: Populations,
        rates: Rates,
        share: Expression,
        let: Let,
        u_body: Vector = (),
    ) -> PartialCell:
        """The cell as its boundary sees it, of which a body fills a share."""
        collision, lattice = self.collision, self.lattice
        mass = 1 / collision.velocity([1], at.rho)[0]
        feq, moves = collision.feq(lattice, *at), self.body is not None and self.body.moves
        return PartialCell(
            lattice=lattice,
            share=share,
            omega=collision.stress_rate(rates),
            u=at.u,
            u_body=u_body or [0] * lattice.D,
            beyond=beyond_equilibrium(collision, lattice, f, feq, moves),
            collided=collided,
            feq=lambda u: collision.feq(lattice, at.density, at.rho, u),
            momentum=lambda u: [mass * u_a for u_a in u],
            let=let,
        )

    def _local(
        self, f: Populations, at: Macroscopic, inside: Populations | None, rates: Rates, let: Let
    ) -> Rates:
        """The rates in the cell, which a closure computes; `inside`: F_i within the collision."""
        if self.collision.closure is None:
            return rates
        return self.local_rates(self.stress(f, at, inside, let), at.rho, rates, let)

    def stress(
        self, f: Populations, at: Macroscopic, source: Populations | None, let: Let
    ) -> Stress:
        """{(a, b): second moment of f - feq + F/2}, a <= b, without the trace."""
        c, D = self.lattice.c, self.lattice.D
        stress: dict[tuple[int, int], Expression] = {}
        feq = self.collision.feq(self.lattice, *at)
        for a, b in pairs(D):
            cc = [v[a] * v[b] for v in c]
            value = dot(cc, f) - dot(cc, feq) + (dot(cc, source) / 2 if source else 0)
            stress[a, b] = let(f"stress_{AXES[a]}{AXES[b]}", expanded(value))
        mean = let("stress_mean", sum(stress[a, a] for a in range(D)) / D)
        return {(a, b): v - mean if a == b else v for (a, b), v in stress.items()}

    def rates_at(self, rates: Rates, nu: Expression, let: Let) -> dict[str, Expression]:
        """The rates of the collision for the viscosity nu of a cell, from those of the fluid."""
        closure, collision = self.collision.closure, self.collision
        own = {name: rates[name] for name in closure.arguments(self.lattice)} if closure else {}
        rates = {name: rate for name, rate in rates.items() if name not in own}
        omega = let("omega_here", 1 / (nu / self.lattice.cs2 + Rational(1, 2)))
        return collision.local_rates(rates, omega) | own

    def local_rates(
        self, stress: Stress, rho: Expression, rates: Rates, let: Let
    ) -> dict[str, Expression]:
        """The rates in a cell with this stress, from those of the fluid."""
        closure, collision = self.collision.closure, self.collision
        assert closure is not None  # only then rates are local
        assert collision.shear_rate is not None  # Collision.problems refuses other closures
        own = {name: rates[name] for name in closure.arguments(self.lattice)}
        rates = {name: rate for name, rate in rates.items() if name not in own}
        (inverse,) = collision.velocity([1], rho)
        omega = closure.omega(
            self.lattice, stress, 1 / inverse, rates[collision.shear_rate], let, **own
        )
        return collision.local_rates(rates, omega)

    def initial(
        self, kernel: KernelValues, density: Expression, u: Vector, stressed: Stressed | None = None
    ) -> list[Expression]:
        """Outgoing populations of a cell at rho and u in equilibrium: feq_i + F_i / 2.

        If the force acts outside the collision: feq_i + F_i, at the velocity of the collision.
        `stressed`: the second moments sum_i c_i c_i (f_i - feq_i) of a flow, and rates; the result
        is then that of a collision of feq_i - F_i / 2 + w_i Q_i : stress / (2 cs4).
        """
        rho, F = kernel.let("rho", self.rest(density)), self.force(kernel)
        at = Macroscopic(density, rho, self._colliding(kernel, rho, u, F))
        feq = self.collision.feq(self.lattice, *at)
        source = self.source(at, F)
        if stressed is not None:
            stress, rates = stressed
            f = _sum(feq, populations(self.lattice, 0, [0] * self.lattice.D, stress))
            if source is not None and self.half:
                f = _sum(f, [-F_i / 2 for F_i in source])
            f = [kernel.let(f"f_{i}", f_i) for i, f_i in enumerate(f)]
            return self.collide_at(f, at, F, rates, kernel.let)
        if source is None:
            return feq
        return _sum(feq, [F_i / 2 for F_i in source] if self.half else source)

    def _colliding(self, kernel: KernelValues, rho: Expression, u: Vector, F: Vector) -> Vector:
        """The velocity at which a fluid of velocity u collides."""
        if self.half or self.forcing is None:
            return u
        push = self.collision.velocity(F, rho)
        parts = zip(self.axes, u, push, strict=True)
        return [kernel.let(f"v_{a}", u_a - p / 2) for a, u_a, p in parts]

    def hold(
        self, kernel: KernelValues, f: Populations, u: Vector, rate: Expression, rates: Rates
    ) -> list[Expression]:
        """A collision at a prescribed velocity u: j* = j + rate (rho u - j), all else unchanged.

        Repeated steps relax the pressure and the stresses to those of the flow u. The term w_i
        c_i.(rho u - j) / cs2 is added before the collision, and the part 1 - rate of it subtracted
        afterwards; only the density is conserved. Cells of which a body fills a share are not held.
        [Mei et al. 2006, Comput. Fluids 35, 855]
        """
        density = kernel.let("density", total(f))
        rho, F = kernel.let("rho", self.rest(density)), self.force(kernel)
        u, (share, u_body) = self._colliding(kernel, rho, u, F), self._body_in(kernel)
        mass = 1 / self.collision.velocity([1], rho)[0]
        momentum = self.momentum(kernel, f, self.half)
        if self.body:
            own = zip(self.axes, u, momentum, strict=True)
            u = [kernel.let(f"free_{a}", where(0, share, j / mass, u_a)) for a, u_a, j in own]
        parts = zip(self.axes, u, momentum, strict=True)
        lack = [kernel.let(f"lack_{a}", mass * u_a - j_a) for a, u_a, j_a in parts]
        directions = zip(self.lattice.w, self.lattice.c, strict=True)
        added = [w * dot(c, lack) / self.lattice.cs2 for w, c in directions]
        held = [kernel.let(f"held_{i}", f_i) for i, f_i in enumerate(_sum(f, added))]
        at = Macroscopic(density, rho, u)
        f_star = self.collide_at(held, at, F, rates, kernel.let, share, u_body)
        return _sum(f_star, [(rate - 1) * each for each in added])


def _sum(a: Populations, b: Populations) -> list[Expression]:
    return [x + y for x, y in zip(a, b, strict=True)]


def converter(case: Case, given: Layout, wanted: Layout) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of a state in the layout `given` that returns it in `wanted`.

    One of them stores populations, the other moments. The arithmetic is that of the kernels, in
    float64. A state is (planes, values of a cell, rows, nx), see Populations.read_state; the result
    has its format. `case` has one fluid.
    """
    lattice, (fluid,) = case.lattice, case.fluids
    model = Model(lattice, fluid.collision, None, case.precision.offset)
    count = lattice.Q if given.populations else len(given.slots(lattice))
    values = symbols(f"value:{count}", real=True)
    if given.populations:
        found = [each for _, each in wanted.stored(lattice, 0, values, model)]
    else:
        found = given.outgoing(lattice, 0, lambda _, place: values[place.slot], model)
    compute = lambdify([values], found, "numpy", cse=True)

    def convert(state: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # values of solid cells mean nothing
            cells = compute(np.moveaxis(state.astype(np.float64), 1, 0))
        return np.stack(cells, 1).astype(state.dtype)

    return convert

"""The cell that couplings use, and the model of a fluid under the force of others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from sympy import Symbol

from mpilbm.codegen.cell_values import given
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.model import Macroscopic, Model
from mpilbm.codegen.values import KernelValues
from mpilbm.layouts import HERE, Offset, Place
from mpilbm.layouts.grid import FieldGrid
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Populations, Rates, Vector
from mpilbm.physics.algebra import dot
from mpilbm.physics.lattices import Lattice


@dataclass(frozen=True)
class Acted(Model):
    """A fluid under a given force: `acting`, D expressions."""

    acting: tuple[Expression, ...] | None = None

    def force(self, kernel: KernelValues) -> list[Expression]:
        """The force; ValueError where it is unknown, as in boundary lists."""
        if self.acting is None:
            raise ValueError(f"kernel {kernel.name} asks for the force between fluids")
        return list(self.acting)


class ActedKernels(FluidKernels):
    """The kernels of a fluid under a given force."""

    model: Acted


class Coupled(Protocol):
    """Coupled fluids, as their cells use them; coupled_kernels.py has the implementation."""

    case: Case
    lattice: Lattice
    grid: FieldGrid
    names: tuple[str, ...]
    fluids: list[ActedKernels]


class CoupledCell:
    """The values that a Coupling can use, see model/cell.py; `populations(k)`: those of fluid k."""

    def __init__(
        self,
        kernels: Coupled,
        kernel: KernelText,
        populations: Callable[[int], Populations],
    ) -> None:
        self.kernels, self.kernel, self.f = kernels, kernel, cache(populations)
        self.lattice, self.count = kernels.lattice, len(kernels.fluids)
        self.cs2, self.axes = self.lattice.cs2, kernels.fluids[0].model.axes
        self.let = kernel.let

    @property
    def half(self) -> int:
        return self.kernels.fluids[0].model.half

    def number(self, name: str) -> Symbol:
        return self.kernel.argument(name, "real")

    @cache  # noqa: B019
    def density(self, k: int) -> Symbol:
        return self.let(f"density_{k}", sum(self.f(k)))

    @cache  # noqa: B019
    def rho(self, k: int) -> Symbol:
        return self.let(f"rho_{k}", self.kernels.fluids[k].model.rest(self.density(k)))

    @cache  # noqa: B019
    def momentum(self, k: int) -> list[Expression]:
        return [
            self.let(f"j_{axis}_{k}", dot([c[a] for c in self.lattice.c], self.f(k)))
            for a, axis in enumerate(self.axes)
        ]

    def external_force(self, k: int) -> list[Expression]:
        values = self.kernels.case.force_on(k)
        if not values:
            return [0] * len(self.axes)
        return [given(self.kernel, value, self.lattice) for value in values]

    def here(self, name: str) -> Symbol:
        return self._read(name, HERE, "")

    @cache  # noqa: B019
    def slope(self, name: str) -> list[Expression]:
        lattice = self.lattice
        there: list[Expression] = [0]
        for i in range(1, lattice.Q):
            there.append(self._read(name, lattice.offset(i), f"_{i}"))
        found = []
        for a, axis in enumerate(self.axes):
            weights = [w * c[a] for w, c in zip(lattice.w, lattice.c, strict=True)]
            found.append(self.let(f"slope_{axis}_{name}", dot(weights, there) / self.cs2))
        return found

    @cache  # noqa: B019
    def laplacian(self, name: str) -> Symbol:
        lattice, here = self.lattice, self.here(name)
        around = (self._read(name, lattice.offset(i), f"_{i}") for i in range(1, lattice.Q))
        steps = [0, *(there - here for there in around)]
        return self.let(f"laplacian_{name}", 2 * dot(lattice.w, steps) / self.cs2)

    def _read(self, name: str, offset: Offset, end: str) -> Symbol:
        grid = self.kernels.grid
        slot = self.kernels.names.index(name)
        value = self.kernel.read(name + end, "field", grid, Place(slot, offset))
        self.kernel.loads[value] = (
            f"field[{grid.address(slot, offset, self.kernel.cell)}]"  # not scaled
        )
        return value

    def collided(self, k: int, F: Vector, u: Vector | None = None) -> list[Expression]:
        """Outgoing populations under a force, at the velocity u or at the fluid's own.

        The rest population conserves the mass: rounding in float32 removed 1e-4 of the mass of a
        drop of G = -5 in 8000 steps; with this only 1e-7.
        """
        fluid, f = self.kernels.fluids[k], self.f(k)
        model = replace(fluid.model, acting=tuple(F))
        at = model.macroscopic(self.kernel, f, model.half)
        at = at if u is None else at._replace(u=u)
        f_star = model.collide_at(f, at, F, fluid.rates(self.kernel), self.let)
        return fluid.mass_kept(self.kernel, f_star)

    def relaxed(
        self,
        k: int,
        feq: Populations,
        rates: Rates,
        u: Vector | None = None,
        F: Vector | None = None,
    ) -> list[Expression]:
        fluid, f, density = self.kernels.fluids[k], self.f(k), self.density(k)
        collision = fluid.model.collision
        source: Populations = [0] * self.lattice.Q
        if F is not None:
            assert u is not None  # a force is given together with the velocity
            under_force = fluid.model.source(Macroscopic(density, self.rho(k), u), F)
            assert under_force is not None  # a coupled fluid has a scheme for its force
            source = under_force
        inside = fluid.model.half
        d = [a - b + inside * s / 2 for a, b, s in zip(f, feq, source, strict=True)]
        relaxed = collision.relax(self.lattice, d, **{**fluid.rates(self.kernel), **rates})
        f_star = [a + s - b for a, s, b in zip(f, source, relaxed, strict=True)]
        return fluid.mass_kept(self.kernel, f_star, density)

    def initial(self, k: int, F: Vector) -> list[Expression]:
        model = replace(self.kernels.fluids[k].model, acting=tuple(F))
        density = self.density(k)
        v = model.collision.velocity(self.momentum(k), model.rest(density))
        u = [self.let(f"u_{axis}", each) for axis, each in zip(self.axes, v, strict=True)]
        return model.initial(self.kernel, density, u)

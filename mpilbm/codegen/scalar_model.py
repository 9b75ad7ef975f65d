"""The equations of a scalar, and those of a fluid on which scalars act."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from sympy import Piecewise, Symbol

from mpilbm.codegen.cell_values import centre_of
from mpilbm.codegen.model import Macroscopic, Model, Stressed
from mpilbm.codegen.program import OF
from mpilbm.codegen.scalar_numbers import COLUMNS, MATERIAL, buoyancy_names, table_name
from mpilbm.codegen.values import KernelValues
from mpilbm.core.formulas.values import CellValue
from mpilbm.layouts import HERE, Place
from mpilbm.layouts.grid import Grid
from mpilbm.model.expressions import Expression, Populations, Rates, Vector
from mpilbm.physics.lattices import AXES, Lattice
from mpilbm.physics.scalars import equilibrium
from mpilbm.physics.scalars.collisions import ScalarCollision


class Material(NamedTuple):
    """Symbols of a kernel: the number of the material of its cell, and the numbers of a scalar."""

    number: Symbol
    capacity: Symbol
    conducts: Symbol
    rates: dict[str, Symbol]

    def at_rest(self, u: Vector) -> list[Expression]:
        """The velocity in the fluid, 0 in bodies."""
        return [Piecewise((u_a, self.number < 0.5), (0, True)) for u_a in u]


@dataclass(frozen=True)
class Materials:
    """The materials as a scalar sees them.

    `grid`: the memory of their numbers; `suffix`: the end of the names of the scalar's arrays;
    `rates`: names of the relaxation rates.
    """

    grid: Grid
    suffix: str
    rates: tuple[str, ...]

    def at(self, kernel: KernelValues) -> Material:
        """The material of the kernel's cell."""
        kernel.argument(MATERIAL, "uint8*")
        number = f"{MATERIAL}[{kernel.address(self.grid, Place(0, HERE))}]"
        table, columns = table_name(self.suffix), (*COLUMNS, *self.rates)
        kernel.argument(table, "real*")
        capacity, conducts, *rates = (
            kernel.load(f"{name}_here{self.suffix}", f"{table}[{number} * {len(columns)} + {k}]")
            for k, name in enumerate(columns)
        )
        named = dict(zip(self.rates, rates, strict=True))
        return Material(
            kernel.load(MATERIAL + "_here", f"(real){number}"), capacity, conducts, named
        )


@dataclass(frozen=True)
class ScalarModel:
    """A scalar phi with its collision; the stored populations add up to phi.

    `label`: its name in formulas; `given`: its source, or None; `materials`: those of the cells, or
    None if no body conducts a scalar.
    """

    lattice: Lattice
    collision: ScalarCollision
    number: int
    label: str
    given: CellValue | None = None
    materials: Materials | None = None

    offset: ClassVar[bool] = False
    cut: ClassVar[str] = ""  # a fluid with scalars has no windows

    @property
    def axes(self) -> str:
        """The coordinates: "xy" or "xyz"."""
        return AXES[: self.lattice.D]

    @property
    def suffix(self) -> str:
        """The end of the names of its kernels and arrays."""
        return OF.format(self.number + 1)

    @property
    def any_unit(self) -> bool:
        """Whether the equilibrium is the same in any unit: it is linear in phi."""
        return True

    def capacity(self, kernel: KernelValues) -> Expression:
        """The heat capacity C in the kernel's cell; the populations add up to C phi."""
        return 1 if self.materials is None else self.materials.at(kernel).capacity

    def at_rest(self, kernel: KernelValues, u: Vector) -> Vector:
        """The velocity that carries the scalar: u in the fluid, 0 in bodies."""
        return u if self.materials is None else self.materials.at(kernel).at_rest(u)

    def rest(self, density: Expression) -> Expression:
        """Phi from the sum of the stored populations."""
        return density

    def rebuilt(
        self, density: Expression, u: Vector, A: Sequence[Expression], only: Iterable[int] | None
    ) -> list[Expression]:
        """Raises ValueError: phi and its fluxes do not determine the populations of a scalar."""
        raise ValueError("the populations of a scalar do not follow from moments; store them")

    def macroscopic(self, kernel: KernelValues, f: Populations, half: int) -> Macroscopic:
        """Phi; a scalar has neither a density of mass nor a velocity of its own."""
        return Macroscopic(kernel.let("density", sum(f) / self.capacity(kernel)))

    def initial(
        self, kernel: KernelValues, density: Expression, u: Vector, stressed: Stressed | None = None
    ) -> list[Expression]:
        """Populations in equilibrium."""
        u = self.at_rest(kernel, u)
        return equilibrium(self.lattice, density, u, self.capacity(kernel))

    def source_at(self, kernel: KernelValues, values: Mapping[str, Expression]) -> Expression:
        """The source S for the values of all scalars, by label; 0 without one."""
        if self.given is None:
            return 0
        numbers = {name: kernel.argument(name, "real") for name in self.given.numbers}
        here = numbers | centre_of(kernel, self.given, self.lattice) | dict(values)
        return self.given.expression(here)

    def collided(
        self,
        kernel: KernelValues,
        g: Populations,
        phi: Expression,
        u: Vector,
        S: Populations,
        rates: Rates,
    ) -> list[Expression]:
        """g* = g + S - R(g - geq + S/2); populations, phi and S in the kernel's unit."""
        u = self.at_rest(kernel, u)
        geq = equilibrium(self.lattice, phi, u, self.capacity(kernel))
        d = [a - b + s / 2 for a, b, s in zip(g, geq, S, strict=True)]
        relaxed = self.collision.relax(self.lattice, d, **rates)
        return [a + s - r for a, s, r in zip(g, S, relaxed, strict=True)]


class Carried(Protocol):
    """The kernels of a scalar, as the fluid that carries it uses them; see ScalarKernels."""

    @property
    def label(self) -> str:
        """The name of the scalar."""

    @property
    def model(self) -> ScalarModel:
        """Its equations."""

    def left(self, kernel: KernelValues) -> list[Expression]:
        """Its outgoing populations of the previous step."""


ScalarPart = TypeVar("ScalarPart", bound=Carried)


@dataclass(frozen=True)
class Carrying(Model, Generic[ScalarPart]):
    """A fluid that carries scalars; `scalars`: their kernels.

    `buoyant`: numbers of the scalars that act on the flow; `pushed`: whether the case gives a
    force.
    """

    scalars: tuple[ScalarPart, ...] = ()
    buoyant: tuple[int, ...] = ()
    pushed: bool = False

    def force(self, kernel: KernelValues) -> list[Expression]:
        """The force of the case, and sum_k buoyancy_k (phi_k - reference_k)."""
        D, unit = self.lattice.D, kernel.unit
        found = replace(self, unit=unit)._given(kernel) if self.pushed else [0] * D
        for k in self.buoyant:
            along, reference = buoyancy_names(k, D)
            above = scalar_values(kernel, self.scalars)[self.scalars[k].label]
            above -= kernel.argument(reference, "real")
            found = [
                F + unit * kernel.argument(name, "real") * above
                for F, name in zip(found, along, strict=True)
            ]
        return found

    def _given(self, kernel: KernelValues) -> list[Expression]:
        return super().force(kernel)


def scalar_values(kernel: KernelValues, scalars: Sequence[Carried]) -> dict[str, Expression]:
    """The value of each scalar in the cell of a kernel, by label.

    A step supplies them in `kernel.known`; other kernels compute them from outgoing populations.
    """
    if kernel.known:
        return dict(kernel.known)
    sums = {each.label: sum(each.left(kernel)) for each in scalars}
    return midway(kernel, scalars, sums, -1)[0]


def midway(
    kernel: KernelValues,
    scalars: Sequence[Carried],
    sums: Mapping[str, Expression],
    half: int,
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """The value phi and the source S of each scalar, by label, from the sums of populations.

    S(phi) at C phi = sum_i g_i + half S/2 follows from one iteration, accurate to second order.
    `half`: +1 for incoming and -1 for outgoing populations, 0 in equilibrium.
    """

    def values(sources: Mapping[str, Expression]) -> dict[str, Expression]:
        return {
            each.label: (sums[each.label] + half * sources.get(each.label, 0) / 2)
            / each.model.capacity(kernel)
            for each in scalars
        }

    def sources(values: Mapping[str, Expression]) -> dict[str, Expression]:
        return {each.label: each.model.source_at(kernel, values) for each in scalars}

    found = sources(values({}))
    if any(each.model.given and each.model.given.fields for each in scalars):
        found = sources(values(found))
    return values(found), found

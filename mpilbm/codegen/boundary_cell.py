"""The values that `Boundary.incoming` can use, of a listed cell and of the cells inwards of it.

model/cell.py describes them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from sympy import Expr, Piecewise, Rational, Symbol, sqrt, sympify

from mpilbm.codegen.cell_values import centre_of, given
from mpilbm.codegen.entries import OWN, EntryText, mirror_of, staged
from mpilbm.codegen.kernels import FieldKernels
from mpilbm.codegen.model import Macroscopic, Model
from mpilbm.codegen.printer import symbol
from mpilbm.codegen.program import Access
from mpilbm.core.formulas.trees import total
from mpilbm.layouts import HERE, Offset, Place
from mpilbm.layouts.cells import CellNames
from mpilbm.model.cell import LayerSample, SurfaceSample
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.collisions.recursive_regularized import rebuilt_by_recursion
from mpilbm.physics.equilibria import dot

HALF = Rational(1, 2)


@dataclass(frozen=True)
class Listed:
    """A boundary list in the steps of one parity, from which its kernels are generated.

    `name`: that of the kernel that stages incoming populations. `beside`: see wall_effects.
    """

    fluid: FieldKernels
    boundary: Condition
    name: str
    parity: int
    beside: Collection[str] = ()


class CellView:
    """The values of a cell in the kernel of a list; only values that are used are read."""

    def __init__(self, kernel: EntryText, of: Listed) -> None:
        self._kernel, self._of, self._fluid, self._parity = kernel, of, of.fluid, of.parity
        self.lattice = of.fluid.lattice

    @cached_property
    def left(self) -> list[Expression]:
        return self._fluid.outgoing(self._kernel, self._parity)

    @cached_property
    def streamed(self) -> list[Expression]:
        """What the cell would gather without boundaries; undefined along missing links."""
        return self._fluid.incoming(self._kernel, self._parity, "f", "streams")

    @cached_property
    def arrives(self) -> list[Expression]:
        f = self.streamed
        self._kernel.per_entry("blocked", "uint32*")
        if "move" in self._of.beside:
            self._kernel.per_entry("moved", "int32*")
            self._kernel.argument("motions", "real*")
        if "slip" in self._of.beside:
            self._kernel.per_entry("slipped", "int32*")
            self._kernel.argument("mirrors", "int64*")
        return [f[0], *(self._arrives(i, f[i]) for i in range(1, self.lattice.Q))]

    def _arrives(self, i: int, f_i: Expression) -> Symbol:
        kernel = self._kernel
        links = kernel.per_entry("blocked", "uint32*")
        blocked = kernel.load(f"blocked_{i}", f"(real)({links} >> {i} & 1)")
        back = self.left[self.lattice.opp[i]]
        if "move" in self._of.beside:
            moved = kernel.per_entry("moved", "int32*")
            back += kernel.load(f"motion_{i}", f"motions[{moved} * {self.lattice.Q} + {i}]")
        known = [(back, blocked > 0), (f_i, True)]
        if "slip" in self._of.beside:
            slipped = kernel.per_entry("slipped", "int32*")
            known.insert(0, mirror_of(kernel, self._fluid, i, slipped))
        return kernel.let(f"arrives_{i}", Piecewise(*known))

    @cached_property
    def _macroscopic(self) -> Macroscopic:
        return self._fluid.model.macroscopic(self._kernel, self.left, -1)

    @property
    def _flow(self) -> Model:
        """The equations of the fluid. Raises ValueError in conditions on scalars."""
        model = self._fluid.model
        if not isinstance(model, Model):
            raise ValueError(
                f"{self._of.boundary.name} uses feq, force, velocity, momentum or inertia, which "
                "cells of a fluid have; a condition on a scalar uses the density and populations"
            )
        return model

    @property
    def density(self) -> Expression:
        return self._macroscopic.density

    @property
    def rho(self) -> Expression:
        return self._macroscopic.rho

    @property
    def inertia(self) -> Expression:
        """The momentum per volume of the outgoing populations divided by u: rho, or rho_0 = 1."""
        return self.inertia_of(self.rho)

    def inertia_of(self, rho: Expression) -> Expression:
        (inverse,) = self._flow.collision.velocity([1], rho)
        return 1 / sympify(inverse)

    @property
    def u(self) -> Vector:
        return self._macroscopic.u


class BoundaryCell(CellView):
    """The cell of an entry of a boundary list; reads and computes values when they are used."""

    def __init__(self, kernel: EntryText, of: Listed) -> None:
        super().__init__(kernel, of)
        boundary = self._boundary = of.boundary
        self._inwards: dict[int, CellView] = {}
        self._given = boundary.given()
        self._columns = [name for value in self._given for name in value.numbers]
        self._cut = of.fluid.model.cut
        given_here = (
            given(kernel, value, self.lattice, self._number, cut=self._cut) for value in self._given
        )
        self.values = dict(zip(boundary.values(), given_here, strict=True))

    def _number(self, name: str) -> Symbol:
        """The symbol of a given number, which is read from its column."""
        column = f"value[entry] * {len(self._columns)} + {self._columns.index(name)}"
        return self._kernel.load(name, f"(real)values[{column}]")

    def at_wall(self, i: int, expression: Expression, q: Expression = HALF) -> Expr:
        return self._moved(expression, [q * c for c in self.lattice.c[i]])

    def _moved(self, expression: Expression, back: Vector) -> Expr:
        """The expression with the given values taken at the centre of the cell minus `back`."""
        moved = {}
        for known, value in zip(self.values.values(), self._given, strict=True):
            if value.coordinates:
                place = centre_of(self._kernel, value, self.lattice, self._cut)
                for axis, step in zip("xyz", back, strict=False):
                    place |= {axis: place[axis] - step} if axis in place else {}
                numbers = {name: self._number(name) for name in value.numbers}
                moved[known] = value.expression(numbers | place)
        return sympify(expression).xreplace(moved)

    @cached_property
    def meeting(self) -> Symbol:
        self._kernel.per_entry("blocked", "uint32*")
        return self._kernel.load("meeting", f"(real)(blocked[{OWN}] & 1)")

    def link(self, i: int) -> Symbol:
        self._kernel.per_entry("link", "real*")
        self._kernel.argument("own_link", "int64")
        return self._kernel.load(f"link_{i}", f"link[{staged(i)} - own_link]")

    def behind(self, i: int, k: int, j: int) -> Expression:
        step, fluid = self.lattice.offset(i), self._fluid
        places: dict[Symbol, Place] = {}

        def read(name: int | str, place: Place) -> Symbol:
            value = symbol(f"behind{k}_{i}_{name}")
            places[value] = place
            return value

        f = fluid.layout.outgoing(self.lattice, self._parity, read, fluid.model)[j]
        for value in sorted(sympify(f).free_symbols & places.keys(), key=str):
            slot, offset = places[value]
            here = k if offset == HERE else k + (1 if offset == step else -1)
            away = (here * step[0], here * step[1], here * step[2])
            self._behind(value, slot, here, away, staged(i))
        return f

    def supplies(self, i: int, yes: Expression, no: Expression) -> Expr:
        listed = self._kernel.load(f"supplied_{i}", f"(real)(links >> {i} & 1)")
        return Piecewise((yes, listed > 0), (no, True))

    def owns(self, i: int, yes: Expression, no: Expression) -> Expr:
        self._kernel.per_entry("blocked", "uint32*")
        own = self._kernel.load(f"own_{i}", f"(real)((links & blocked[{OWN}]) >> {i} & 1)")
        return Piecewise((yes, own > 0), (no, True))

    def u_behind(self, i: int) -> list[Expression]:
        kernel, D = self._kernel, self.lattice.D
        kernel.per_entry("near_start", "int64*")
        kernel.argument("near", "real*")
        before = f"POPCOUNT(links & blocked[{OWN}] & {(1 << i) - 2}u)"
        at = f"near[(near_start[{OWN}] + {before}) * {D}"
        near = [kernel.load(f"near_{i}_{axis}", f"{at} + {a}]") for a, axis in enumerate("xyz"[:D])]
        return [self.owns(i, u, 0) for u in near]

    @cached_property
    def surface(self) -> SurfaceSample:
        kernel, D = self._kernel, self.lattice.D
        kernel.per_entry("surface", "real*")
        kernel.per_entry("near", "real*")
        names = [*(f"normal_{axis}" for axis in "xyz"[:D]), "height", "inclined", "curved"]
        row = [kernel.load(n, f"surface[{OWN} * {D + 3} + {k}]") for k, n in enumerate(names)]
        near = enumerate([*(f"sampled_{axis}" for axis in "xyz"[:D]), "sampled_inertia"])
        flow = [kernel.load(name, f"near[{OWN} * {D + 1} + {k}]") for k, name in near]
        return SurfaceSample(row[:D], row[D], row[D + 1], row[D + 2], flow[:D], flow[D])

    def at_surface(self, expression: Expression) -> Expr:
        return self._moved(expression, [HALF * n for n in self.surface.normal])

    @cached_property
    def layer(self) -> LayerSample:
        self._kernel.per_entry("layer", "real*")
        names = [*(f"normal_{axis}" for axis in "xyz"[: self.lattice.D]), "height", "area"]
        each = enumerate(names)
        row = [self._kernel.load(n, f"layer[{OWN} * {len(names)} + {k}]") for k, n in each]
        return LayerSample(row[:-2], row[-2], row[-1])

    def below_foot(self, expression: Expression) -> Expr:
        return self._moved(expression, [self.layer.height * n for n in self.layer.normal])

    def _behind(self, value: Symbol, slot: int, k: int, offset: Offset, link: str) -> None:
        """Load a value of the k-th cell behind a link, at an offset from x."""
        kernel, grid = self._kernel, self._fluid.grid
        kernel.per_entry(f"cells_behind{k}", "int64*")
        kernel.argument("own_link", "int64")
        kernel.argument("f", "store*")
        cell = f"cells_behind{k}[{link} - own_link]"
        there = kernel.at(CellNames.packed(cell))
        kernel.loads[value] = there.load_of("f", grid, Place(slot, HERE))
        kernel.touched[0].add("f")
        kernel.record(grid, Place(slot, offset))

    def streams(self, offset: Sequence[int], j: int) -> Expr:
        """The population that streams along c_j to x + offset, also beyond a face.

        The access is recorded as that of a population that streams into x, which crosses the same
        planes.
        """
        steps = self.lattice.offset_of(offset)
        end = "_to_" + "".join("mop"[1 + step] for step in steps)
        places: dict[Symbol, Place] = {}

        def read(name: int | str, place: Place) -> Symbol:
            value = symbol(f"streams_{name}{end}")
            places[value] = place
            return value

        fluid, kernel = self._fluid, self._kernel
        f = sympify(fluid.layout.incoming(self.lattice, self._parity, read, fluid.model)[j])
        for value in sorted(f.free_symbols & places.keys(), key=str):
            slot, place = places[value]
            kernel.read(str(value), "f", fluid.grid, Place(slot, place))
            there = (steps[0] + place[0], steps[1] + place[1], steps[2] + place[2])
            kernel.loads[value] = kernel.load_of("f", fluid.grid, Place(slot, there))
        return f

    def mirrored(self, i: int, offset: Sequence[int], j: int) -> Expression:
        """The mirror image for the link along c_i; layouts of listed cells list its places."""
        kernel, fluid, parity = self._kernel, self._fluid, self._parity
        if not fluid.layout.listed:
            return self.streams(offset, j)
        kernel.per_entry(f"from_{parity}", "int64*")
        kernel.argument("own_link", "int64")
        kernel.argument("f", "store*")
        kernel.touched[0].add("f")
        kernel.reads.append(Access(fluid.grid.name, *fluid.layout.gather(self.lattice, j, parity)))
        value = f"LOAD(f, from_{parity}[{staged(i)} - own_link])"
        return kernel.load(f"mirrored_{i}", value)

    @cached_property
    def normal(self) -> tuple[int, ...]:
        return self._boundary.normal(self.lattice.D)

    @property
    def cs(self) -> Expr:
        return sqrt(self.lattice.cs2)

    @property
    def viscosity(self) -> Symbol:
        """The viscosity of the fluid, an argument of the kernel."""
        return self._kernel.argument("viscosity", "real")

    @cached_property
    def state(self) -> dict[str, Symbol]:
        names = self._boundary.state(self.lattice)
        return {
            name: self._kernel.load(f"state_{name}", f"state[{self._kernel.state(k, len(names))}]")
            for k, name in enumerate(names)
        }

    def inward(self, k: int) -> CellView:
        declared = self._boundary.capabilities.inward
        if not 0 < k <= declared:
            raise ValueError(
                f"{self._boundary.name} reads {k} cells inwards, but its capabilities declare "
                f"inward = {declared}"
            )
        if k not in self._inwards:
            self._inwards[k] = CellView(self._kernel.inwards(k), self._of)
        return self._inwards[k]

    def feq(self, density: Expression, rho: Expression, u: Vector) -> list[Expression]:
        return self._flow.collision.feq(self.lattice, density, rho, u)

    def rebuilt(self, u: Vector, A: Sequence[Expression]) -> list[Expression]:
        state = (self.lattice, self.density, self.rho, u, A)
        named = partial(self._named, "image")
        return rebuilt_by_recursion(self._flow.collision, *state, let=named)

    def _named(self, before: str, name: str, expression: Expression) -> Symbol:
        return self._kernel.let(f"{before}_{name}", expression)

    def stored(self, rho: Expression) -> Expression:
        if not self._fluid.model.offset:
            return rho
        return 0 if rho == 1 else self._kernel.let("stored", rho - 1)

    def macroscopic(self, f: Populations) -> tuple[Expression, Expression, list[Expression]]:
        density = total(f)
        rho = self.rest(density)
        momentum = [dot([c[a] for c in self.lattice.c], f) for a in range(self.lattice.D)]
        return density, rho, self.velocity(momentum, rho)

    @cached_property
    def force(self) -> list[Expression]:
        return self._flow.force(self._kernel)

    def velocity(self, momentum: Vector, rho: Expression) -> list[Expression]:
        whole = [j + F / 2 for j, F in zip(momentum, self.force, strict=True)]
        return self._flow.collision.velocity(whole, rho)

    def momentum(self, rho: Expression, u: Vector) -> list[Expression]:
        (inverse,) = self._flow.collision.velocity([1], rho)
        return [v / inverse - F / 2 for v, F in zip(u, self.force, strict=True)]

    def rest(self, density: Expression) -> Expression:
        return self._fluid.model.rest(density)

    def below(self, a: Expression, b: Expression, yes: Expression, no: Expression) -> Expr:
        return Piecewise((yes, a < sympify(b)), (no, True))

    def let(self, name: str, expression: Expression) -> Symbol:
        return self._kernel.let(name, expression)

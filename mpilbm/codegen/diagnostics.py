"""The kernels that compute fields and sums of a fluid: rho and u, vorticity, sums over rows."""

from dataclasses import replace
from functools import lru_cache
from math import prod

from sympy import Piecewise, Rational, Symbol, sqrt

from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels, flags_type
from mpilbm.codegen.sums import RowSums, plane_sums
from mpilbm.layouts import HERE, AnyGrid, Place
from mpilbm.layouts.cells import CELL
from mpilbm.layouts.grid import velocity_grid
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot
from mpilbm.physics.sampled import Sampled
from mpilbm.physics.sloped import Sloped

FLUID = "flags[cell] & 1"  # bit k + 1: neighbour k of lattice.stencil is fluid
PLACE = "((plane - first) * rows + row) * nx + x"  # index of a cell in the flags
IN_BLOCK = replace(CELL, plane="(plane - u_first)")  # in the velocity of a block of planes
Mixture = tuple[Expression, Expression, Vector, Vector]  # density, rho, u and momentum
Sides = tuple[tuple[Expression, Expression], Expression, Expression]  # see `_differences`


class Diagnostics:
    """Generates the kernels that compute macroscopic fields and sums of a fluid.

    `sloped`: the fields that are stored after the velocity, see physics/sloped.py.
    """

    def __init__(self, fluid: FluidKernels, sloped: tuple[Sloped, ...] = ()) -> None:
        self.sloped = sloped
        self.fluid, self.model, self.lattice = fluid, fluid.model, fluid.lattice
        self.grid = velocity_grid(self.lattice, 1, 1, 1, 1, len(self.sloped))
        self.flags = flags_type(self.lattice)

    def all(self) -> list[KernelText]:
        """All kernels of this class."""
        parities, outputs = range(self.fluid.layout.parities), range(self.output_count)
        by_parity = [make(parity) for parity in parities for make in (self.fields, self.velocity)]
        return [*by_parity, *self.once(), *(self.output(k, p) for p in parities for k in outputs)]

    def once(self) -> list[KernelText]:
        """The kernels that are the same in all steps."""
        return [self.vorticity(), self.q_criterion(), self.enstrophy(), plane_sums()]

    @property
    def sampled(self) -> Sampled:
        """What samples of the flow contain."""
        return Sampled(self.lattice.D)

    @property
    def output_count(self) -> int:
        """The number of `Case.own_fields`: those of a coupling, or scalars and pressure."""
        return 1

    def output_text(self, k: int) -> str:
        """The equation of field k of these, a comment in the text."""
        return "p = cs2 (rho - rho_0), rho_0 = 1"

    def output_value(self, kernel: KernelText, k: int, parity: int) -> Expression:
        """Field k of these in the cell of a kernel, here the pressure relative to that at rho_0."""
        return self.lattice.cs2 * (self.macroscopic(kernel, parity)[0] - int(not self.model.offset))

    def output(self, k: int, parity: int) -> KernelText:
        """Field k of these; 0 in solids that do not carry it."""
        kernel = self._derived(f"output_{k}", self.output_text(k), self.fluid.grid, parity)
        return self._stored(kernel, [self.output_value(kernel, k, parity)], *self.hidden(kernel, k))

    def hidden(self, kernel: KernelText, k: int) -> tuple[str, *tuple[Expression, ...]]:
        """The condition that a cell does not carry output k, see `_stored`."""
        return ("solid",)

    def macroscopic(self, kernel: KernelText, parity: int) -> Mixture:
        """density, rho, u and momentum of the outgoing populations of the previous step."""
        f = self.fluid.outgoing(kernel, parity)
        return *self.model.macroscopic(kernel, f, -1), self.model.momentum(kernel, f, -1)

    def in_sample(self, kernel: KernelText, parity: int) -> list[Expression]:
        """rho, u and the scalars in the cell of a kernel, see Sampled."""
        _, rho, u, _ = self.macroscopic(kernel, parity)
        return [rho, *u]

    def fields(self, parity: int) -> KernelText:
        """rho and u after the collision; 1 and 0 in solids."""
        text = "rho = sum_i f_i, rho u = sum_i c_i f_i - F/2, after the collision"
        kernel = self.fluid.block_kernel("fields", text, parity)
        kernel.optional = True
        rest = ["", ""]  # over nodes the host has already set the values in solids
        if self.fluid.grid.over == "cells":
            self._solid(kernel)
            rest = ["solid ? R(1) : ", "solid ? R(0) : "]
        kernel.argument("rho_out", "real*")
        kernel.argument("u_out", "real*")
        _, rho, u, _ = self.macroscopic(kernel, parity)
        kernel.do(f"STORE_REAL(rho_out, cell, {rest[0]}{{0}});", rho, writes="rho_out")
        for a, value in enumerate(u):
            index = f"cell * {self.lattice.D} + {a}"
            text = f"STORE_REAL(u_out, {index}, {rest[1]}{{0}});"
            kernel.do(text, value, writes="u_out")
        return kernel

    def velocity(self, parity: int) -> RowSums:
        """u, and the fields `sloped`, into the velocity field; sums over the cells of each row."""
        text = "density, j, j.u / 2, largest u.u, cells that are not finite"
        kernel, fluid = self._sums("velocity", text, self.fluid.grid, parity), self._inside
        density, _, u, momentum = self.macroscopic(kernel, parity)
        for a, value in enumerate(u):
            self.store_velocity(kernel, a, value)
        kernel.add(density, fluid)
        for value in momentum:
            kernel.add(value, fluid)
        kernel.add(dot(momentum, u) / 2, fluid)
        kernel.maximum(dot(u, u), fluid)
        kernel.count("!isfinite((double)({0}))", density + sum(u), fluid)
        for value in self.masses(kernel):
            kernel.add(value, fluid)
        values = self.sloped_values(kernel, parity)
        for k, (each, value) in enumerate(zip(self.sloped, values, strict=True)):
            value = kernel.let(f"sloped_{k}", value)
            self.store_velocity(kernel, self.lattice.D + k, value)
            if each.values and each.largest:
                kernel.maximum(value, fluid)
                kernel.maximum(1 / value, fluid)
            elif each.values:
                kernel.add(value, fluid)
                kernel.square(value, fluid)
                middle = kernel.argument(each.middle, "real")
                when, *more = self.carrying(kernel, k, fluid)
                kernel.farthest(value, middle, when, *more)
        return kernel

    def masses(self, kernel: KernelText) -> list[Expression]:
        """The masses of several fluids in the cell of the kernel `velocity`."""
        return []

    def sloped_values(self, kernel: KernelText, parity: int) -> list[Expression]:
        """The values of the fields `sloped` in the cell of the kernel `velocity`."""
        return []

    def carrying(
        self, kernel: KernelText, k: int, fluid: str
    ) -> tuple[str, *tuple[Expression, ...]]:
        """The condition that a cell carries field k of `sloped`, see RowSums.farthest."""
        return (fluid,)

    def store_velocity(self, kernel: KernelText, slot: int, value: Expression) -> None:
        """Store a component of the velocity, or a further value, in the block of planes."""
        kernel.argument("u_first", "int64")
        kernel.at(IN_BLOCK).write("u", self.grid, Place(slot, HERE), value)

    def change(self, parity: int) -> RowSums:
        """Sums over the fluid cells of each row of (u - u')^2 and u^2; stores u.

        u' is read from a copy of the array: on an H200, a kernel that reads and writes one array
        took six times as long as without its stores.
        """
        kernel = self._sums("change", "(u - u').(u - u'), u.u; u' = u", self.fluid.grid, parity)
        fluid = self._inside
        _, _, u, _ = self.macroscopic(kernel, parity)
        changes = []
        for a, value in enumerate(u):
            before = self._velocity(kernel, f"before_{a}", Place(a, HERE))
            changes.append(kernel.let(f"change_{a}", value - before))
            kernel.write("u_before", self.grid, Place(a, HERE), value)
        kernel.add(dot(changes, changes), fluid)
        kernel.add(dot(u, u), fluid)
        return kernel

    def flux(self, parity: int) -> RowSums:
        """Sums over the fluid cells of each row of the momentum j, of u, and of |u|."""
        kernel = self._sums("flux", "j, u, sqrt(u.u)", self.fluid.grid, parity)
        fluid = self._inside
        _, _, u, momentum = self.macroscopic(kernel, parity)
        for value in (*momentum, *u, sqrt(dot(u, u))):
            kernel.add(value, fluid)
        return kernel

    def vorticity(self) -> KernelText:
        """The curl of the velocity field by finite differences; 0 in solids."""
        kernel = self._derived("vorticity", "omega = curl u, central differences")
        return self._stored(kernel, self._curl(kernel, PLACE))

    def q_criterion(self) -> KernelText:
        """Q = (Omega:Omega - S:S) / 2 of the velocity gradient; 0 in solids."""
        kernel = self._derived("q_criterion", "Q = -(du_a/dx_b) (du_b/dx_a) / 2")
        axes = range(self.lattice.D)
        slope = {
            (a, b): kernel.let(f"slope_{a}_{b}", self._slope(kernel, a, b, PLACE))
            for a in axes
            for b in axes
        }
        return self._stored(kernel, [-dot(slope.values(), [slope[b, a] for a, b in slope]) / 2])

    def _derived(
        self, role: str, equations: str, grid: AnyGrid | None = None, parity: int | None = None
    ) -> KernelText:
        """A kernel that computes a field, by default from the velocities of neighbours."""
        kernel = self.fluid.block_kernel(role, equations, parity, grid or self.grid)
        kernel.optional = True
        self._solid(kernel)
        kernel.argument("derived_out", "real*")
        return kernel

    def _stored(
        self, kernel: KernelText, values: Vector, hidden: str = "solid", *more: Expression
    ) -> KernelText:
        """Store values of the cell in `derived_out`; 0 where the C text `hidden` is true.

        In this text {1}, {2}, … are replaced by the expressions `more`.
        """
        for a, value in enumerate(values):
            index = f"cell * {len(values)} + {a}"
            text = f"STORE_REAL(derived_out, {index}, {hidden} ? R(0) : {{0}});"
            kernel.do(text, value, *more, writes="derived_out")
        return kernel

    def enstrophy(self) -> RowSums:
        """Sums of omega.omega / 2 and |grad phi|^power over the fluid cells of each row."""
        text = "omega.omega / 2, omega = curl u by central differences"
        kernel = self._sums("enstrophy", text, self.grid)
        kernel.optional = True
        curl = self._curl(kernel, "cell")
        kernel.add(dot(curl, curl) / 2, FLUID)
        for k, each in enumerate(self.sloped, self.lattice.D):
            if each.power == 2:
                kernel.add(self._square(kernel, k), FLUID)
                continue
            slopes = [self._slope(kernel, axis, k, "cell") for axis in range(self.lattice.D)]
            slopes = [kernel.let(f"slope_{axis}_{k}", s) for axis, s in enumerate(slopes)]
            kernel.add(sqrt(dot(slopes, slopes)), FLUID)
        return kernel

    def transport(self, numbers: tuple[int, ...]) -> RowSums:
        """Sums over the fluid cells of each row of u_a phi, d_a phi and |grad phi|^2, for each of
        `numbers`.
        """
        kernel = self._sums("transport", "u phi, grad phi, |grad phi|^2", self.grid)
        kernel.optional = True
        axes = range(self.lattice.D)
        u = [self._velocity(kernel, f"u_{a}", Place(a, HERE)) for a in axes]
        for k in (self.lattice.D + number for number in numbers):
            phi = self._velocity(kernel, f"u_{k}", Place(k, HERE))
            slopes = [self._slope(kernel, axis, k, "cell") for axis in axes]
            square = self._square(kernel, k)
            for value in (*(v * phi for v in u), *slopes, square):
                kernel.add(value, FLUID)
        return kernel

    @property
    def _inside(self) -> str:
        """C text: whether a cell of the populations is fluid; all nodes are."""
        return "1" if self.fluid.grid.over == "nodes" else FLUID

    def _sums(self, role: str, equations: str, over: AnyGrid, parity: int | None = None) -> RowSums:
        """A kernel of sums over rows: of cells with flags, or of nodes, depending on the grid."""
        if over.over == "nodes":
            kernel = RowSums(role, equations, "node_rows", parity=parity)
            kernel.argument("node_row", "int32*")
        else:
            kernel = RowSums(role, equations, parity=parity)
            kernel.argument("flags", self.flags)
        kernel.sizes(self.grid)
        self.fluid.find_cell(kernel, over)
        return kernel

    def _solid(self, kernel: KernelText) -> None:
        """Declare `solid`. The flags begin at plane `first` of the array."""
        kernel.argument("flags", self.flags)
        kernel.argument("first", "int64")
        kernel.do(f"const int solid = !(flags[{PLACE}] & 1);")

    def _velocity(self, kernel: KernelText, name: str, place: Place) -> Symbol:
        """Load a component of the velocity, or a further value, from the block of planes."""
        kernel.argument("u_first", "int64")
        return kernel.at(IN_BLOCK).read(name, "u", self.grid, place)

    def _curl(self, kernel: KernelText, flag: str) -> list[Expression]:
        pairs = ((1, 2), (2, 0), (0, 1)) if self.lattice.D == 3 else ((0, 1),)
        curl = [self._slope(kernel, a, b, flag) - self._slope(kernel, b, a, flag) for a, b in pairs]
        return [kernel.let(f"omega_{k}", component) for k, component in enumerate(curl)]

    def _slope(self, kernel: KernelText, axis: int, component: int, flag: str) -> Expression:
        """du_component / dx_axis; one-sided next to a solid or a wall, zero between two.

        On a staggered lattice the neighbours along the axis are not stored. The slopes along the
        diagonals v, w of each plane that contains the axis give d_a u = (v_a v.grad u + w_a w.grad
        u) / 2, averaged over the planes in which both diagonals have a slope.
        """
        directions = self.lattice.stencil[1::2]
        if not self.lattice.staggered:
            return self._along(kernel, axis, component, flag)[0]
        total: Expression = 0
        planes: Expression = 0
        for other in (k for k in range(self.lattice.D) if k != axis):
            diagonals = [k for k, v in enumerate(directions) if v[axis] and v[other]]
            parts = [self._along(kernel, k, component, flag) for k in diagonals]
            there = Piecewise((1, prod(neighbours for _, neighbours in parts) > 0), (0, True))
            slopes = dot([directions[k][axis] for k in diagonals], [slope for slope, _ in parts])
            total, planes = total + there * slopes / 2, planes + there
        return total * Piecewise((Rational(1, 2), planes > 1), (1, True))

    def _along(
        self, kernel: KernelText, k: int, component: int, flag: str
    ) -> tuple[Expression, Expression]:
        """v.grad u_component for v = stencil[2 k + 1], and the number of its fluid neighbours."""
        (below, above), half, neighbours = self._sides(kernel, k, component, flag)
        return half * (below + above), neighbours

    def _square(self, kernel: KernelText, component: int) -> Expression:
        """|grad phi|^2 of value `component`: the mean over both sides of squared differences.

        Next to a solid or a wall that of the other side. Unlike the square of central differences
        it includes the shortest waves, and its error is a quarter as large.
        """
        found: Expression = 0
        for axis in range(self.lattice.D):
            (below, above), half, _ = self._sides(kernel, axis, component, "cell")
            found += half * (below**2 + above**2)
        return found

    def _sides(self, kernel: KernelText, k: int, component: int, flag: str) -> Sides:
        """`_differences` of a value along v = stencil[2 k + 1]."""
        step = self.lattice.offset_of(self.lattice.stencil[2 * k + 1])

        def value(sign: int) -> Symbol:
            offset = (sign * step[0], sign * step[1], sign * step[2])
            name = f"u_{component}_{k}_{'mcp'[sign + 1]}" if sign else f"u_{component}"
            return self._velocity(kernel, name, Place(component, offset))

        low, high = (
            kernel.load(f"open_{k}_{side}", f"flags[{flag}] >> {1 + 2 * k + way} & 1 ? R(1) : R(0)")
            for way, side in enumerate("mp")
        )
        return _differences(value(0), value(-1), value(1), low, high)


@lru_cache(1000)  # the same for all fluids on a lattice
def _differences(here: Symbol, before: Symbol, after: Symbol, low: Symbol, high: Symbol) -> Sides:
    """Differences to the values before and after a cell, 0 where `low` or `high` is 0 (no fluid);
    the factor of their mean, 1/2 or 1; the number of fluid neighbours.
    """
    below = Piecewise((here - before, low > 0), (0, True))
    above = Piecewise((after - here, high > 0), (0, True))
    half = Piecewise((Rational(1, 2), low * high > 0), (1, True))
    return (below, above), half, low + high

"""Values of a cell in the text of any kernel: functions of its coordinates, and its solid share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sympy import Symbol

from mpilbm.codegen.printer import symbol
from mpilbm.codegen.program import MOTION, MOVED, SHARE, Access
from mpilbm.codegen.values import Index, KernelValues, centre
from mpilbm.core.formulas.values import CellValue
from mpilbm.layouts import HERE, AnyGrid, Place
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.model.expressions import Expression, Let, Populations, Vector
from mpilbm.physics.algebra import expanded, moments_of, populations
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice
from mpilbm.solids.shares import WHOLE


def given(
    kernel: KernelValues,
    value: CellValue,
    lattice: Lattice,
    number: Callable[[str], Symbol] | None = None,
    known: Mapping[str, Expression] | None = None,
    cut: str = "",
) -> Symbol:
    """The symbol of a value: an argument of the kernel, or a formula that it computes in each cell.

    `number(name)` returns the symbol of a number; by default an argument is declared. `known`:
    values of the cell that the formula uses, by name. `cut`: see `index`. The same value always has
    the same symbol.
    """
    symbols = {
        name: number(name) if number else kernel.argument(name, "real") for name in value.numbers
    }
    if not value.local:
        return symbols[value.name]
    here = symbols | centre_of(kernel, value, lattice, cut) | dict(known or {})
    expression = value.expression(here)
    defined = kernel.definitions.get(symbol(value.name))
    return symbol(value.name) if defined == expression else kernel.let(value.name, expression)


def centre_of(
    kernel: KernelValues, value: CellValue, lattice: Lattice, cut: str = ""
) -> dict[str, Symbol]:
    """Symbols of the coordinates of the kernel's cell that a formula uses, by axis."""
    return {
        axis: kernel.coordinate(f"cell_{axis}", index(kernel, axis, lattice, cut))
        for axis in value.coordinates
    }


def index(kernel: KernelValues, axis: str, lattice: Lattice, cut: str = "") -> Index:
    """A function that gives the C text of the global number of a cell along an axis.

    `below`: the number of planes of the box below the first plane of the array. `cut`: the axes
    along which a window has a cut, see solids/windows.py: cells behind it have larger numbers.
    """
    if axis in cut:
        whole = index(kernel, axis, lattice)
        type = "int64" if axis == "xyz"[lattice.D - 1] else "int"
        kernel.declare(**{f"cut_at_{axis}": type, f"cut_from_{axis}": type})
        return lambda cell: behind_cut(axis, whole(cell))
    if axis == "xyz"[lattice.D - 1]:
        kernel.argument("below", "int64")
        if kernel.cell.owned:
            return lambda cell: f"{cell.plane} + below"
        kernel.argument("box_planes", "int64")  # of a periodic axis, whose ghost planes are listed
        return lambda cell: f"INSIDE({cell.plane} + below, box_planes)"
    if kernel.listed:
        kernel.declare(node_start="int64*", node_cell="int32*", nx="int")
        operator = "%" if axis == "x" else "/"
        return lambda cell: f"node_cell[node_start[{cell.plane}] + {cell.node}] {operator} nx"
    if axis == "x" and lattice.staggered:
        kernel.argument("odd", "int")
        return lambda cell: f"2 * ({cell.x}) + ODD"
    return (lambda cell: f"({cell.x})") if axis == "x" else (lambda cell: cell.row)


def behind_cut(axis: str, number: str) -> str:
    """C text of the number of a cell in the box, from its number in a window with a cut."""
    return f"({number} + ({number} >= cut_at_{axis} ? cut_from_{axis} : 0))"


@dataclass(frozen=True)
class CellBody:
    """The bodies that act in cells: their boundary, and the memory of the shares.

    moves  whether some of them move
    """

    boundary: Condition
    grid: Grid | None = None
    moves: bool = False

    def beside(self, grid: AnyGrid) -> "CellBody":
        """With the shares beside the memory `grid` of the fluid."""
        assert isinstance(grid, Grid)  # other layouts refuse bodies that act in cells
        return replace(self, grid=byte_grid(SHARE, grid))

    def share(self, kernel: KernelValues) -> Expression:
        """The share of the kernel's cell."""
        return kernel.load("share", share_text(self._number(kernel, SHARE)))

    def number(self, kernel: KernelValues) -> str:
        """C text of the number of the moving body in the kernel's cell, 0 without one."""
        return self._number(kernel, MOVED)

    def _number(self, kernel: KernelValues, array: str) -> str:
        assert self.grid is not None  # FluidKernels gives it
        kernel.argument(array, "uint8*")
        access = Access(array, 0, HERE)
        if access not in kernel.reads:
            kernel.reads.append(access)
        place = kernel.address(self.grid, Place(0, HERE))
        return f"{array}[{place}]"

    def shown(self, kernel: KernelValues) -> list[Expression]:
        """What outputs show of the moving body in the kernel's cell: the share, 1 + its number in
        the case. Both are 0 without one.
        """
        stored, number = share_text(self._number(kernel, SHARE)), self.number(kernel)
        share = kernel.load("moving_share", f"({number} ? {stored} : R(0))")
        return [share, kernel.load("body_number", f"(real){self._row(kernel)}[BODY_NUMBER]")]

    def velocity(self, kernel: KernelValues, lattice: Lattice) -> list[Expression]:
        """The velocity of the body in the kernel's cell: u + spin x (x - centre)."""
        axes = "xyz"[: lattice.D]
        if not self.moves:
            return [0] * lattice.D
        of = f"in_body{kernel.end}"
        if symbol(f"u_body_x{kernel.end}") not in kernel.loads:
            kernel.argument(MOTION, "double*")
            at = [centre(index(kernel, axis, lattice)(kernel.cell)) for axis in axes]
            place = ", ".join([self.number(kernel), *at, *["R(0)"] * (3 - lattice.D)])
            kernel.do(f"const Velocity {of} = velocity_in_body({MOTION}, {place});")
        return [kernel.load(f"u_body_{axis}", f"{of}.{axis}") for axis in axes]

    def offsets(self, kernel: KernelValues, lattice: Lattice) -> list[Expression]:
        """The offset of the kernel's cell from the centre of its body."""
        of, found = self._row(kernel), []
        for k, axis in enumerate("xyz"[: lattice.D]):
            at = centre(index(kernel, axis, lattice)(kernel.cell))
            from_centre = f"{at} - (real){of}[BODY_CENTRE + {k}], (real){of}[BODY_WRAP + {k}]"
            found.append(kernel.load(f"from_centre_{axis}", f"wrapped_real({from_centre})"))
        return found

    def _row(self, kernel: KernelValues) -> str:
        """C text of the numbers of the body in the kernel's cell."""
        kernel.argument(MOTION, "double*")
        return f"({MOTION} + ROW_OF({self.number(kernel)}))"


def share_text(stored: str) -> str:
    """C text of a share, from that of the stored number."""
    return f"(real){stored} * R(1.0 / {WHOLE}.0)"


def beyond_equilibrium(
    collision: Collision,
    lattice: Lattice,
    f: Populations,
    feq: Populations,
    let: Let,
    lack: Vector | None = None,
) -> list[Expression]:
    """f - feq; of a collision without moments above the second order, its moments up to these.

    Also in bodies that move, with `lack`, the momentum of f - feq: there nothing damps higher
    moments, and they grew in those that turn (a disc of radius 24 with `trt` or `bgk` at tau = 0.6
    after 5000 steps). `let` names the moments there: a kernel that writes them out for each
    population takes twice as many registers.
    """
    left = [a - b for a, b in zip(f, feq, strict=True)]
    if lack is not None:
        of_f, of_feq = (moments_of(lattice, each)[2] for each in (f, feq))
        each = enumerate(zip(of_f, of_feq, strict=True))
        second = [let(f"beyond_{k}", a - expanded(b)) for k, (a, b) in each]
        return populations(lattice, 0, lack, second)
    if not collision.second_order:
        return left
    _, momentum, second = moments_of(lattice, left)
    return populations(lattice, 0, momentum, second)

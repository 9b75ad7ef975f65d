"""Kernel text of bodies that move: their shares and velocities in cells, and the force on them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.forces import CellForceText
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import (
    CLEAR,
    CURSORS,
    DISTANCES,
    FREE_CELLS,
    MOTION,
    MOTIONS,
    MOVE,
    MOVED,
    MOVED_CELLS,
    MOVER,
    NEXT,
    RESTING,
    SHARE,
)
from mpilbm.layouts import HERE
from mpilbm.model.expressions import Expression
from mpilbm.solids.distance_field import BAND, SPACING
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES, PLACES, WIDTH
from mpilbm.solids.shares import SMALL, WHOLE

AROUND = """\
GLOBAL const double* mine = motion + ROW_OF({mover});
int at[3], left_over = (int)entry;
for (int a = 0; a < 3; a++) {{
  const int side = (int)mine[BODY_SIDE + a], size = (int)mine[BODY_WRAP + a];
  at[a] = (int)mine[BODY_ORIGIN + a] + left_over % side;
  left_over /= side;
  if (size > 0) at[a] += at[a] < 0 ? size : at[a] >= size ? -size : 0;
}}
const int x = at[0], row = {row};
const int64 plane = {across} - below;
if (x < 0 || x >= nx || row < 0 || row >= rows || plane < first || plane >= end_plane) return;"""

PLACE = """
for (int k = 1; k < {mover}; k++)
  if (around_body(motion + ROW_OF(k), at[0], at[1], at[2])) return;
const int64 place = {place};
const int rests = {resting}[place];
float total = rests ? (float)(rests / (double)WHOLE_SHARE) : 0, largest = total;
int body = 0;
for (int k = 1; k <= movers; k++) {{
  const float filled = (float)share_of_body(motion + ROW_OF(k), {distances}, at[0] + 0.5,
                                            at[1] + 0.5, {z});
  if (filled > 0 && filled >= largest) {{ largest = filled; body = k; }}
  total += filled;
}}
const uint8 stored = stored_share(total);
{share}[place] = stored;
{moved}[place] = (uint8)(stored ? body : 0);"""


def move_kernel(fluid: FluidKernels) -> KernelText:
    """Kernel text: the shares of the cells around the moving body `mover`, and their bodies.

    `entry` counts the cells of the box around the body. A cell in the boxes of several bodies is
    computed for the first of them, with the shares of all bodies.
    """
    body = fluid.model.body
    assert body, "bodies that move act in cells"
    assert body.grid, "FluidKernels gives it"
    text = "share of each cell = at rest + sum over bodies that move"
    kernel = KernelText(MOVE, "entries", text)
    kernel.sizes(body.grid)
    types = {"nx": "int", "rows": "int", "below": "int64", "first": "int64", "end_plane": "int64"}
    types |= {MOVER: "int", "movers": "int", MOTION: "double*", DISTANCES: "float*"}
    kernel.declare(**types, **dict.fromkeys((SHARE, MOVED, RESTING), "uint8*"))
    given = {"mover": MOVER, "share": SHARE, "moved": MOVED, "resting": RESTING}
    given["distances"] = DISTANCES
    flat = fluid.lattice.D == 2
    given |= _along(flat)
    given |= {"z": "0" if flat else "at[2] + 0.5", "place": body.grid.address(0, HERE)}
    kernel.written |= {SHARE, MOVED}
    kernel.do((AROUND + PLACE).format(**given).replace("{", "{{").replace("}", "}}"))
    return kernel


def next_kernel() -> KernelText:
    """Copy the numbers of the next time, of which each has a cursor of its own."""
    kernel = KernelText(NEXT, "entries", "motion = motions[cursor], cursor = cursor + 1")
    kernel.declare(**{MOTION: "double*", MOTIONS: "double*", CURSORS: "int32*", "numbers": "int"})
    following = f"{MOTIONS}[{CURSORS}[entry] * (int64)numbers + entry]"
    kernel.do(f"{MOTION}[entry] = {following};", writes=MOTION)
    kernel.do(f"{CURSORS}[entry] += 1;", writes=CURSORS)
    return kernel


def clear_kernel() -> KernelText:
    """Leave the shares of bodies at rest alone."""
    kernel = KernelText(CLEAR, "entries", "share of each cell = at rest")
    kernel.declare(**dict.fromkeys((SHARE, MOVED, RESTING), "uint8*"))
    kernel.do(f"{SHARE}[entry] = {RESTING}[entry];", writes=SHARE)
    kernel.do(f"{MOVED}[entry] = 0;", writes=MOVED)
    return kernel


def _along(flat: bool) -> dict[str, str]:
    """C text of the row and of the plane of the box, in 2D or 3D, of the cell at[]."""
    return {"row": "0" if flat else "at[1]", "across": "at[1]" if flat else "at[2]"}


@cache
def moving_text() -> str:
    """C text of the functions that kernels of moving bodies use."""
    defined = {f"BODY_{name.upper()}": place for name, place in PLACES.items()}
    defined |= {"WHOLE_SHARE": WHOLE, "SMALL_NORMAL": repr(SMALL)}
    defined |= {"POINTS_PER_CELL": repr(1 / SPACING), "LARGEST_DISTANCE": BAND}
    defined["ROW_OF(k)"] = f"({WIDTH} * (int64)(k))"
    lines = [f"#define {name} {value}" for name, value in defined.items()]
    text = Path(__file__).with_name("moving_bodies.h").read_text("utf-8")
    return "\n".join(lines) + "\n" + text


class MovingDiagnostics(Diagnostics):
    """The diagnostic kernels of a flow with moving bodies; FIELDS_OF_BODIES are outputs."""

    @property
    def output_count(self) -> int:
        """The number of outputs of any flow, and of these fields."""
        return super().output_count + len(FIELDS_OF_BODIES)

    def output_text(self, k: int) -> str:
        """The equation of output k."""
        texts = "share of the moving body in the cell", "1 + number of this body, or 0"
        own = k - super().output_count
        return super().output_text(k) if own < 0 else texts[own]

    def output_value(self, kernel: KernelText, k: int, parity: int) -> Expression:
        """Output k in the cell of a kernel."""
        own, body = k - super().output_count, self.model.body
        assert body, "bodies that move act in cells"
        return super().output_value(kernel, k, parity) if own < 0 else body.shown(kernel)[own]


class MovingForceText(CellForceText):
    """As CellForceText, of the cells that the moving body `mover` fills; other cells add 0.

    The torque is about the centre of the body.
    """

    role = MOVED_CELLS

    def _place(self, bit: int, axis: str, framed: bool) -> Expression:
        """The offset of the cell's centre from the centre of the body."""
        body = self.of.model.body
        assert body is not None  # see CellForceText
        return body.offsets(self, self.lattice)[bit]

    def _add(self, force: Sequence[Expression], places: Sequence[Expression]) -> None:
        """Add the force of the body's own cells."""
        body = self.of.model.body
        assert body is not None  # see CellForceText
        self.argument(MOVER, "int")
        own = self.load("own", f"(real)({body.number(self)} == {MOVER})")
        super()._add([own * each for each in force], places)


class FreeForceText(MovingForceText):
    """As MovingForceText, of the cells of the box around the body that are in this slab.

    `entry` counts the cells of the box; a plane of it belongs to one slab. `head` has a number for
    each cell of the slab, or for one cell if `head_step` is 0, without boundary lists.
    """

    role = FREE_CELLS
    head = "head_step * (((plane - first) * rows + row) * nx + x)"

    def __init__(self, fluid: FluidKernels, parity: int, lowest: int) -> None:
        super().__init__(fluid, parity, lowest, framed=False)
        body = fluid.model.body
        assert body is not None  # see CellForceText
        del self.arguments["cells"]
        self.declare(nx="int", rows="int", below="int64", first="int64", end_plane="int64")
        self.declare(head_step="int64", **{MOTION: "double*"})
        cell = self.cell
        assert (cell.plane, cell.row, cell.x) == ("plane", "row", "x"), "AROUND defines these"
        around = AROUND.format(mover=MOVER, **_along(fluid.lattice.D == 2))
        self.entry = [
            *around.splitlines(),
            f"MAYBE_UNUSED const int {cell.x_m} = X_BEFORE(x), {cell.x_p} = X_AFTER(x);",
            f"MAYBE_UNUSED const int {cell.row_m} = BEFORE(row, rows), "
            f"{cell.row_p} = AFTER(row, rows);",
            f"if ({body.number(self)} != {MOVER}) return;",
        ]

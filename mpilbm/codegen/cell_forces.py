"""The kernel of the forces on bodies that act in cells: sums of what their cells take."""

from collections.abc import Sequence

from mpilbm.codegen.coordinates import index
from mpilbm.codegen.entries import EntryText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.program import BODY_CELLS
from mpilbm.model.expressions import Expression
from mpilbm.physics.lattices import AXES

TURNS = (("y", "z", "x"), ("z", "x", "y"), ("x", "y", "z"))  # torque_c = a f_b - b f_a


class CellForceText(EntryText):
    """A kernel over chunks of cells that adds force and torque, see Boundary.taken.

    An entry is a cell of a body. `head` has the first of the staged entries of a boundary list in
    this cell, or -1. The torque is that about the origin of the coordinates of the body, of a force
    at the centre of the cell; `framed`: whether bodies have frames, see case/case.py.
    """

    def __init__(self, fluid: FluidKernels, parity: int, lowest: int, framed: bool) -> None:
        assert fluid.model.body is not None  # there is such a kernel for these bodies only
        text = f"F = taken from the fluid in a cell: {fluid.model.body.boundary.name}"
        super().__init__(BODY_CELLS, text, fluid, parity, "other", "chunks")
        self.lattice, self.axes, self.links = fluid.lattice, AXES[: fluid.lattice.D], ""
        self.declare(chunk_first="int32*", chunk_entry="int32*", chunk_sums="double*")
        self.written.add("chunk_sums")
        stored = fluid.layout.populations
        self.argument("staging", "store*" if stored else "real*")
        for i, f_i in enumerate(fluid.incoming(self, parity, "f", "streams")):
            self.do(f"real arrives_{i} = {{0}};", f_i)
        self.enter_all(lowest, "LOAD(staging, {})" if stored else "staging[{}]")
        f = [self.load(f"arrived_{i}", f"arrives_{i}") for i in range(fluid.lattice.Q)]
        force = fluid.model.taken(self, f, fluid.rates(self))
        places = [self._place(bit, axis, framed) for bit, axis in enumerate(self.axes)]
        self._add(force, places)

    @property
    def columns(self) -> list[str]:
        """Names of the sums."""
        turns = AXES if len(self.axes) == 3 else "z"
        return [f"force_{a}" for a in self.axes] + [f"torque_{a}" for a in turns]

    def _place(self, bit: int, axis: str, framed: bool) -> Expression:
        """The coordinate of the cell's centre, in the frame of its body."""
        number = index(self, axis, self.lattice)(self.cell)
        if not framed:
            return self.load(f"at_{axis}", f"(real)({number}) + R(0.5)")
        self.declare(frames="double*", member="int32*", **{f"box_{axis}": "int"})
        frame = f"frames[{2 * len(self.axes)} * (int64)member[entry] + {2 * bit}"
        box = f"(real)({number}) + R(0.5)"
        across = f"({box} < {frame}] ? box_{axis} : 0)"
        return self.load(f"at_{axis}", f"{box} + {across} + (real){frame} + 1]")

    def _add(self, force: Sequence[Expression], places: Sequence[Expression]) -> None:
        """Add the force, and place x force."""
        F, at = dict(zip(self.axes, force, strict=True)), dict(zip(self.axes, places, strict=True))
        for k, axis in enumerate(self.axes):
            self.do(f"const double taken_{axis} = {{0}};", F[axis])
            self.do(f"total[{k}] += taken_{axis};")
        turns = [turn for turn in TURNS if {*turn[:2]} <= {*self.axes}]
        for k, (a, b, _) in enumerate(turns, len(self.axes)):
            text = f"total[{k}] += (double){{0}} * taken_{b} - (double){{1}} * taken_{a};"
            self.do(text, at[a], at[b])

    def driver(self) -> str:
        """The loop over chunks, with the number of columns."""
        return f"FOR_CHUNKS({self.name}_at, {len(self.columns)})"

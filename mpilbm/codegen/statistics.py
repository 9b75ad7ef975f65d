"""The kernels that add a sample of rho and u to sums: of each cell, of rows, of columns.

    d = (rho, u) - shift        sums of d_rho, d_a and d_a d_b over the fluid cells, in double

A sample reads the populations once and stores neither rho nor u. Places of sum k (and of shift k):

    sample_cells     sums[plane, k, row, x]      coalesced: neighbouring threads, neighbouring x
    sample_columns   sums[plane, k, x]           sums over the rows of a plane
    sample_rows      sums[plane, row, k]         sums over x; one thread of a row stores them

The first sample gives the shift: it is added with a shift of 0, and then `first_mean` (of cells:
`first_value`) computes the shift and sets the sums to 0. `mean_fields` computes means and stresses
of cells from their sums, and `merge_cells` the moments of the cells of several planes.
"""

from mpilbm.codegen.diagnostics import FLUID, Diagnostics
from mpilbm.codegen.kernel_text import ColumnSums, KernelText, RowSums
from mpilbm.physics.algebra import pairs
from mpilbm.physics.lattices import AXES

EQUATIONS = "d = (rho, u) - shift; sums of d_rho, d_a and d_a d_b, in double"

NODE_OF_CELL = """\
const int node = node_of(node_cell + node_start[plane], ROW_START(plane, row), \
ROW_START(plane, row + 1), row, x, nx);
  if (node < 0) return;"""


class Samples:
    """Generates the kernels of the output `statistics`."""

    def __init__(self, diagnostics: Diagnostics):
        self.diagnostics, self.fluid = diagnostics, diagnostics.fluid
        self.over, D = diagnostics.fluid.grid.over, diagnostics.lattice.D
        self.sums, self.shifts = 1 + D + D * (D + 1) // 2, 1 + D

    def all(self) -> list[KernelText]:
        """The kernels of all parities."""
        parities = range(self.fluid.layout.parities)
        by_parity = [
            make(parity) for parity in parities for make in (self.cells, self.rows, self.columns)
        ]
        once = self.first_value, self.first_mean, self.mean_fields, self.merge_cells
        return [*by_parity, *(make() for make in once)]

    def cells(self, parity: int) -> KernelText:
        """Adds to the sums of each cell; the shift has the precision of the values."""
        kernel = self.fluid.block_kernel("sample_cells", EQUATIONS, parity)
        kernel.argument("shift", "real*")
        kernel.argument("sums", "double*")
        kernel.do("const int64 cells = (int64)rows * nx, before = (plane - origin) * cells;")
        for name, count in (("place", self.sums), ("shift_place", self.shifts)):
            kernel.do(f"const int64 {name} = cell + before * {count - 1};")
        add = "sums[place + {k} * cells] += {value};"
        return self._sampled(kernel, parity, "shift[shift_place + {k} * cells]", add)

    def rows(self, parity: int) -> KernelText:
        """Adds to the sums over the cells of each row."""
        over = "node_rows" if self.over == "nodes" else "rows"
        kernel = RowSums("sample_rows", EQUATIONS, over, parity=parity, adds=True)
        kernel.argument("shift", "double*")
        if self.over == "nodes":
            kernel.argument("node_row", "int32*")
        self.fluid.find_cell(kernel, self.fluid.grid)
        shift = f"shift[((plane - origin) * rows + row) * {self.shifts} + {{k}}]"
        kernel.columns = self.sums
        return self._sampled(kernel, parity, shift)

    def columns(self, parity: int) -> KernelText:
        """Adds to the sums over the rows of a plane, at each x."""
        kernel = ColumnSums("sample_columns", EQUATIONS, self.sums, parity=parity)
        kernel.argument("shift", "double*")
        kernel.sizes(self.fluid.grid)
        if self.over == "nodes":
            tables = {"nx": "int", "rows": "int", "node_row": "int32*", "node_cell": "int32*"}
            for name, type in tables.items():
                kernel.argument(name, type)
            kernel.do(NODE_OF_CELL)
        else:
            self.fluid.find_cell(kernel, self.fluid.grid)
        shift = f"shift[((plane - origin) * {self.shifts} + {{k}}) * nx + x]"
        return self._sampled(kernel, parity, shift)

    def _sampled(
        self, kernel: KernelText, parity: int, shift: str, add: str = "TOTAL({k}) += {value};"
    ) -> KernelText:
        """Add the statements; `shift` and `add` are C texts with the number k of a sum."""
        if self.over != "nodes":
            kernel.argument("flags", self.diagnostics.flags)
            kernel.do(f"const int fluid = {FLUID};")
        _, rho, u, _ = self.diagnostics.macroscopic(kernel, parity)
        names = ["d_rho", *(f"d_{axis}" for axis in AXES[: len(u)])]
        for k, (name, value) in enumerate(zip(names, (rho, *u), strict=True)):
            kernel.do(f"const double {name} = (double){{0}} - {shift.format(k=k)};", value)
        products = [f"{names[1 + a]} * {names[1 + b]}" for a, b in pairs(len(u))]
        for k, value in enumerate([*names, *products]):
            value = value if self.over == "nodes" else f"fluid ? {value} : 0"
            kernel.do(add.format(k=k, value=value), writes="sums")
        return kernel

    def first_value(self) -> KernelText:
        """The shift of each cell: its value. An entry is a place, of one sum, of all planes."""
        return self._first("first_value", "real", "1")

    def first_mean(self) -> KernelText:
        """The shift of each row or column: the mean over its fluid cells."""
        kernel = self._first("first_mean", "double", "number > 1 ? number : 1")
        kernel.argument("cells", "int32*")
        return kernel

    def _first(self, role: str, type: str, number: str) -> KernelText:
        """shift = sums / number, sums = 0.

        In the arrays the numbers k of a place are `step` apart, and groups of `step` places follow
        one another.
        """
        kernel = KernelText(role, "entries", "shift = sums / number of fluid cells; sums = 0")
        kernel.argument("step", "int64")
        kernel.argument("shift", f"{type}*")
        kernel.argument("sums", "double*")
        kernel.do("const int64 group = entry / step, within = entry - group * step;")
        if number != "1":
            kernel.do("const int32 number = cells[entry];")
        place = f"(group * {self.sums} + {{k}}) * step + within"
        for k in range(self.sums):
            if k < self.shifts:
                target = f"shift[(group * {self.shifts} + {k}) * step + within]"
                mean = f"sums[{place.format(k=k)}] / ({number})"
                kernel.do(f"{target} = ({type})({mean});", writes="shift")
            kernel.do(f"sums[{place.format(k=k)}] = 0;", writes="sums")
        return kernel

    def mean_fields(self) -> KernelText:
        """Means and stresses of cells; the first value of each output is that of entry `start`."""
        text = "mean = shift + sum / n, stress = (sum_ab - n (sum_a / n) (sum_b / n)) / n"
        kernel = KernelText("mean_fields", "entries", text)
        means, products = self._moments(kernel, "samples")
        kernel.argument("start", "int64")
        kernel.argument("missing", "double")
        kernel.do("const int64 to = entry - start;")
        stresses = [f"({product}) / samples" for product in products]
        for name, values in {"rho": means[:1], "u": means[1:], "reynolds_stress": stresses}.items():
            kernel.argument(f"{name}_out", "double*")
            for k, value in enumerate(values):
                place = f"{name}_out[to * {len(values)} + {k}]"
                kernel.do(f"{place} = fluid ? {value} : missing;", writes=f"{name}_out")
        return kernel

    def merge_cells(self) -> KernelText:
        """Merges the moments of cells into `moments`: n, means, sums of products, at each place.

        The entries of a launch are the cells of one plane.
        """
        text = "mean += (mean' - mean) n' / (n + n'), ' for the cell [Chan et al. 1983]"
        kernel = KernelText("merge_cells", "entries", text)
        means, products = self._moments(kernel, "(fluid ? samples : 1)")
        kernel.do("const double number = fluid ? samples : 0;")
        kernel.argument("moments", "double*")
        before = [f"moments[{k} * step + within]" for k in range(1 + self.sums)]
        kernel.do(f"const double n = {before[0]}, both = n + number;")
        kernel.do("const double share = number / (both > 1 ? both : 1), weight = n * share;")
        for k, mean in enumerate(means):
            kernel.do(f"const double d_{k} = ({mean}) - {before[1 + k]};")
        kernel.do(f"{before[0]} = both;", writes="moments")
        for k in range(self.shifts):
            target = before[1 + k]
            kernel.do(f"{target} = {target} + d_{k} * share;", writes="moments")
        for k, (a, b) in enumerate(pairs(self.shifts - 1)):
            target, cross = before[1 + self.shifts + k], f"(d_{a + 1} * d_{b + 1}) * weight"
            kernel.do(f"{target} = {target} + ({products[k]}) + {cross};", writes="moments")
        return kernel

    def _moments(self, kernel: KernelText, n: str) -> tuple[list[str], list[str]]:
        """C texts of the means of a cell and of its sums of u_a' u_b', from n samples.

        Declares `fluid`: a cell is fluid if the shift of its rho is not 0. An entry is a cell of
        all planes, number `within` of its plane.
        """
        kernel.argument("step", "int64")
        kernel.argument("samples", "double")
        kernel.argument("shift", "real*")
        kernel.argument("sums", "double*")
        kernel.do("const int64 group = entry / step, within = entry - group * step;")
        shift, total = (
            f"{name}[(group * {count} + {{k}}) * step + within]"
            for name, count in (("shift", self.shifts), ("sums", self.sums))
        )
        kernel.do(f"const int fluid = {shift.format(k=0)} != 0;")
        for k in range(self.shifts):
            kernel.do(f"const double first_{k} = {total.format(k=k)} / {n};")
        means = [f"(double){shift.format(k=k)} + first_{k}" for k in range(self.shifts)]
        return means, [
            f"{total.format(k=self.shifts + k)} - {n} * (first_{a + 1} * first_{b + 1})"
            for k, (a, b) in enumerate(pairs(self.shifts - 1))
        ]

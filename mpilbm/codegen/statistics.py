"""The kernels that add a sample of rho, u and scalars to sums: of each cell, of rows, of columns.

    d = (rho, q) - shift        sums of d_rho, d_a and d_a d_b over the fluid cells, in double

q: the velocity, and the scalars (see physics/sampled.py). Places of sum k (and of shift k):

    add_kept         sums[plane, k, row, x]      coalesced: neighbouring threads, neighbouring x
    sample_columns   sums[plane, k, x]           sums over the rows of a plane
    sample_rows      sums[plane, row, k]         sums over x; one thread of a row stores them

Sums of cells take more memory traffic than the populations, so `keep_cells` only keeps rho and u,
and `add_kept` adds several samples at once. The first sample gives the shift: for cells its values;
rows and columns are added with a shift of 0, and `first_mean` computes the shift and clears the
sums. `mean_fields` computes means and stresses of cells, `merge_cells` the moments of the cells of
several planes.
"""

from mpilbm.codegen.diagnostics import FLUID, Diagnostics
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.sums import ColumnSums, RowSums
from mpilbm.physics.algebra import pairs
from mpilbm.physics.lattices import AXES

EQUATIONS = "d = (rho, q) - shift; sums of d_rho, d_a and d_a d_b, in double"

NODE_OF_CELL = """\
const int node = node_of(node_cell + node_start[plane], ROW_START(plane, row), \
ROW_START(plane, row + 1), row, x, nx);
  if (node < 0) return;"""


class Samples:
    """Generates the kernels of the output `statistics`."""

    def __init__(self, diagnostics: Diagnostics):
        self.diagnostics, self.fluid = diagnostics, diagnostics.fluid
        self.over, self.sampled = diagnostics.fluid.grid.over, diagnostics.sampled
        m = self.sampled.values
        self.sums, self.shifts = 1 + m + m * (m + 1) // 2, 1 + m

    def all(self) -> list[KernelText]:
        """The kernels of all parities."""
        parities = range(self.fluid.layout.parities)
        by_parity = [
            make(parity) for parity in parities for make in (self.keep, self.rows, self.columns)
        ]
        once = self.add_kept, self.first_mean, self.mean_fields, self.merge_cells
        return [*by_parity, *(make() for make in once)]

    def keep(self, parity: int) -> KernelText:
        """Stores rho and q of each cell as kept[plane, k, row, x], from `kept_first` on; 0 in solid
        cells.
        """
        kernel = self.fluid.block_kernel("keep_cells", "kept = rho, q; 0 in solids", parity)
        kernel.argument("kept", "real*")
        kernel.argument("kept_first", "int64")
        self._places(kernel, place=self.shifts)
        guarded = "{}" if self.over == "nodes" else self._fluid_or(kernel, "R(0)")
        for k, value in enumerate(self.diagnostics.in_sample(kernel, parity)):
            index, text = f"kept_first + place + {k} * cells", guarded.format("{0}")
            kernel.do(f"STORE_REAL(kept, {index}, {text});", value, writes="kept")
        return kernel

    def add_kept(self) -> KernelText:
        """Adds `samples` kept samples, `kept_step` values apart, to the sums of each cell in their
        order.
        """
        kernel = self.fluid.block_kernel("add_kept", EQUATIONS, grid=self.diagnostics.grid)
        kernel.declare(kept="real*", shift="real*", sums="double*")
        kernel.declare(samples="int", kept_step="int64")
        self._places(kernel, place=self.sums, shift_place=self.shifts)
        names = self._deviations()
        for k, name in enumerate(names):
            kernel.do(f"const double {name}_0 = shift[shift_place + {k} * cells];")
        totals = [f"total_{k}" for k in range(self.sums)]
        for k, total in enumerate(totals):
            kernel.do(f"double {total} = sums[place + {k} * cells];")
        kernel.do("for (int sample = 0; sample < samples; sample++) {{")
        kernel.do("  const int64 from = sample * kept_step + shift_place;")
        for k, name in enumerate(names):
            kernel.do(f"  const double {name} = (double)kept[from + {k} * cells] - {name}_0;")
        for total, value in zip(totals, self._terms(names), strict=True):
            kernel.do(f"  {total} += {value};")
        kernel.do("}}")
        for k, total in enumerate(totals):
            kernel.do(f"sums[place + {k} * cells] = {total};", writes="sums")
        return kernel

    def _places(self, kernel: KernelText, **counts: int) -> None:
        """Declare `cells`, and the place of number 0 of the cell in arrays of so many numbers."""
        kernel.do("const int64 cells = (int64)rows * nx, before = (plane - origin) * cells;")
        for name, count in counts.items():
            kernel.do(f"const int64 {name} = cell + before * {count - 1};")

    def rows(self, parity: int) -> KernelText:
        """Adds to the sums over the cells of each row."""
        over = "node_rows" if self.over == "nodes" else "rows"
        kernel = RowSums("sample_rows", EQUATIONS, over, parity)
        kernel.assign = "+="
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
            kernel.declare(nx="int", rows="int", node_row="int32*", node_cell="int32*")
            kernel.do(NODE_OF_CELL)
        else:
            self.fluid.find_cell(kernel, self.fluid.grid)
        shift = f"shift[((plane - origin) * {self.shifts} + {{k}}) * nx + x]"
        return self._sampled(kernel, parity, shift)

    def _sampled(self, kernel: KernelText, parity: int, shift: str) -> KernelText:
        """Add the statements; `shift` is the C text of shift {k}."""
        guarded = "{}" if self.over == "nodes" else self._fluid_or(kernel, "0")
        names, values = self._deviations(), self.diagnostics.in_sample(kernel, parity)
        for k, (name, value) in enumerate(zip(names, values, strict=True)):
            kernel.do(f"const double {name} = (double){{0}} - {shift.format(k=k)};", value)
        for k, value in enumerate(self._terms(names)):
            kernel.do(f"TOTAL({k}) += {guarded.format(value)};", writes="sums")
        return kernel

    def _fluid_or(self, kernel: KernelText, other: str) -> str:
        """C text, with {} for a value: the value in fluid cells, `other` in solid cells."""
        kernel.argument("flags", self.diagnostics.flags)
        kernel.do(f"const int fluid = {FLUID};")
        return f"fluid ? {{}} : {other}"

    def _deviations(self) -> list[str]:
        """C names of the deviations of rho, u and scalars from the shift."""
        scalars = range(len(self.sampled.labels))
        return ["d_rho", *(f"d_{a}" for a in AXES[: self.sampled.D]), *(f"d_{k}" for k in scalars)]

    def _terms(self, names: list[str]) -> list[str]:
        """C texts of what a sample adds to each sum."""
        products = [f"{names[1 + a]} * {names[1 + b]}" for a, b in pairs(self.shifts - 1)]
        return [*names, *products]

    def first_mean(self) -> KernelText:
        """The shift of each row or column: the mean over its fluid cells. The sums become 0.

        An entry is a place, of one sum, of all planes. The numbers k of a place are `step` apart,
        and groups of `step` places follow one another.
        """
        text = "shift = sums / number of fluid cells; sums = 0"
        kernel = KernelText("first_mean", "entries", text)
        kernel.declare(step="int64", cells="int32*", shift="double*", sums="double*")
        kernel.do("const int64 group = entry / step, within = entry - group * step;")
        kernel.do("const int32 number = cells[entry];")
        for k in range(self.sums):
            place = f"(group * {self.sums} + {k}) * step + within"
            if k < self.shifts:
                target = f"shift[(group * {self.shifts} + {k}) * step + within]"
                mean = f"sums[{place}] / (number > 1 ? number : 1)"
                kernel.do(f"{target} = {mean};", writes="shift")
            kernel.do(f"sums[{place}] = 0;", writes="sums")
        return kernel

    def mean_fields(self) -> KernelText:
        """Means and stresses of cells; the first value of each output is that of entry `start`."""
        text = "mean = shift + sum / n, stress = (sum_ab - n (sum_a / n) (sum_b / n)) / n"
        kernel = KernelText("mean_fields", "entries", text)
        means, products = self._moments(kernel, "samples")
        kernel.argument("start", "int64")
        kernel.argument("missing", "double")
        kernel.do("const int64 to = entry - start;")
        values = [*means, *(f"({product}) / samples" for product in products)]
        for name, sums in self.sampled.fields.items():
            kernel.argument(f"{name}_out", "double*")
            for k, number in enumerate(sums):
                place = f"{name}_out[to * {len(sums)} + {k}]"
                kernel.do(f"{place} = fluid ? {values[number]} : missing;", writes=f"{name}_out")
        return kernel

    def merge_cells(self) -> KernelText:
        """Merges the moments of the cells of a plane into `moments`: n, means, sums of products."""
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

        Declares `fluid`: the shift of rho is not 0. An entry is cell `within` of its plane.
        """
        kernel.declare(step="int64", samples="double", shift="real*", sums="double*")
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

"""Kernels that compute sums: over rows and planes, and over the links of boundary lists."""

from collections.abc import Iterator

from mpilbm.codegen.boundary_cell import BoundaryCell, Listed
from mpilbm.codegen.entries import EntryText, listed
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.printer import c_text
from mpilbm.model.expressions import Expression


class RowSums(KernelText):
    """A kernel over rows that computes sums (or maxima) of values of the cells of a row.

    They are stored in `sums`, or added to it if `assign` is "+=".
    """

    assign = "="

    def __init__(
        self, role: str, equations: str, over: str = "rows", parity: int | None = None
    ) -> None:
        super().__init__(role, over, equations, parity=parity)
        self.columns = 0
        self.maxima: list[int] = []
        self.argument("sums", "double*")
        self.written.add("sums")
        self.argument("origin", "int64")

    def add(self, expression: Expression, when: str = "1") -> None:
        """Sum of a value over the cells of the row for which `when` (C text) is true."""
        self.do(f"TOTAL({self.columns}) += ({when}) ? (double)({{0}}) : 0;", expression)
        self.columns += 1

    def square(self, expression: Expression, when: str = "1") -> None:
        """Sum of the square of a value, which is computed in double precision."""
        text = f"TOTAL({self.columns}) += ({when}) ? (double)({{0}}) * (double)({{0}}) : 0;"
        self.do(text, expression)
        self.columns += 1

    def maximum(self, expression: Expression, when: str = "1") -> None:
        """Largest value in the row, at least zero."""
        k = self.columns
        text = f"if ({when} && (double)({{0}}) > TOTAL({k})) TOTAL({k}) = (double)({{0}});"
        self.do(text, expression)
        self.maxima.append(k)
        self.columns += 1

    def farthest(
        self, expression: Expression, middle: Expression, when: str = "1", *more: Expression
    ) -> None:
        """Largest distance of a value from `middle`; {2}, {3}, … in C text `when` are `more`."""
        k, distance = self.columns, "fabs((double)({0}) - (double)({1}))"
        text = f"if (({when}) && {distance} > TOTAL({k})) TOTAL({k}) = {distance};"
        self.do(text, expression, middle, *more)
        self.maxima.append(k)
        self.columns += 1

    def count(self, condition: str, expression: Expression, when: str = "1") -> None:
        """Number of cells for which a condition on {0} (C text) is true."""
        self.do(f"if (({when}) && {condition}) TOTAL({self.columns}) += 1;", expression)
        self.columns += 1

    def driver(self) -> str:
        """The loop over rows, with the number of columns, and which k are maxima, as C text."""
        maxima = " || ".join(f"k == {k}" for k in self.maxima) or "0"
        how = f"{self.columns}, {maxima}, {self.assign}"
        return f"FOR_{self.over.upper()}({self.name}_at, {how})"


class ColumnSums(KernelText):
    """A kernel that adds sums over the rows of a plane, at each x, to sums[plane, k, x]."""

    def __init__(self, role: str, equations: str, columns: int, *, parity: int | None = None):
        super().__init__(role, "columns", equations, parity=parity)
        self.columns = columns
        self.argument("sums", "double*")
        self.argument("origin", "int64")

    def driver(self) -> str:
        """The loop over columns, with the number of sums."""
        return f"FOR_COLUMNS({self.name}_at, {self.columns})"


def plane_sums() -> KernelText:
    """Sums over the rows of each plane, in their order; maxima in the columns k with maxima[k]."""
    kernel = KernelText("plane_sums", "planes", "sum[plane, k] = sum over rows of row_sums")
    kernel.declare(rows="int", columns="int", maxima="int32*", row_sums="double*", sum="double*")
    larger = "value > *total ? value : *total"
    kernel.do(f"*total = maxima[column] ? ({larger}) : *total + value;", writes="sum")
    return kernel


class ChunkText(EntryText):
    """A kernel over chunks of entries that adds the columns `columns` of their links.

    `wanted`: for each direction its values by name, such as "in" and "out".
    """

    ahead = True  # else a GPU waits for the value of a link before it loads that of the next link

    def __init__(self, of: Listed, text: str) -> None:
        super().__init__(f"{of.name}_measured", text, of.fluid, of.parity, "other", "chunks")
        self.lattice = of.fluid.lattice
        self.stored = "AS_STORED({})" if of.fluid.layout.populations else "{}"
        self.wanted: dict[int, dict[str, Expression]] = {}
        self.unstaged()
        if of.boundary.capabilities.per_link:
            self.links += f" const int64 staged = {self.per_entry('start', 'int64*')};"
        self.declare(chunk_first="int32*", chunk_entry="int32*", chunk_sums="double*")
        self.declare(values="real*", value="int32*")
        self.written.add("chunk_sums")

    @property
    def columns(self) -> list[str]:
        """Names of the sums."""
        raise NotImplementedError

    def places(self) -> Iterator[str]:
        """C text before the links of an entry."""
        return iter(())

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds what the link along c_i transports."""
        raise NotImplementedError

    def driver(self) -> str:
        """The loop over chunks, with the number of columns."""
        return f"FOR_CHUNKS({self.name}_at, {len(self.columns)})"

    def body(self) -> list[str]:
        """The links of an entry, one direction after another; then its sums are added."""
        lines, blocks, _ = self.by_direction({i: [*v.values()] for i, v in self.wanted.items()})
        lines = [*self.entry, self.links, *self.places(), *lines]
        lines += [f"double sum_{name} = 0;" for name in self.columns]
        for i, (block, values) in blocks.items():
            named = dict(zip(self.wanted[i], map(c_text, values), strict=True))
            lines += [f"if ({listed(i)}) {{", *block, *self.link(i, named), "}"]
        return lines + [f"total[{k}] += sum_{name};" for k, name in enumerate(self.columns)]


class FluxText(ChunkText):
    """A kernel that adds what the links of a list bring into the fluid in a step."""

    @property
    def columns(self) -> list[str]:
        """The flux into the fluid."""
        return ["flux"]

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds the incoming population less the outgoing one of the link."""
        yield f"sum_flux += (double){self.stored.format(values['in'])} - (double)({values['out']});"


def flux_kernel(of: Listed) -> FluxText:
    """Sum g_i - g_out_opp(i) over the links of a list of a scalar."""
    kernel = FluxText(of, "flux = g_i_in - g_opp_out")
    cell = BoundaryCell(kernel, of)
    for i, incoming in of.boundary.incoming(cell).items():
        kernel.wanted[i] = {"in": incoming, "out": cell.left[cell.lattice.opp[i]]}
    return kernel

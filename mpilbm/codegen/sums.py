"""Kernels that compute sums over rows and planes."""

from mpilbm.codegen.kernel_text import KernelText
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
        """Largest distance of a value from `middle`.

        In the C text `when` {2}, {3}, … are replaced by the expressions `more`.
        """
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
    """Sums over the rows of each plane, in their order, or maxima in some columns.

    The cell function adds a number of a row to the total of its column; maxima[k]: whether column k
    is a maximum.
    """
    kernel = KernelText("plane_sums", "planes", "sum[plane, k] = sum over rows of row_sums")
    kernel.declare(rows="int", columns="int", maxima="int32*", row_sums="double*", sum="double*")
    larger = "value > *total ? value : *total"
    kernel.do(f"*total = maxima[column] ? ({larger}) : *total + value;", writes="sum")
    return kernel

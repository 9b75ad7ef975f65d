"""The kernels that add a sample of rho and u to sums: one per row, or one per column."""

from mpilbm.codegen.kernel_text import KernelText, RowSums
from mpilbm.codegen.kernels import CELL, flags_type
from mpilbm.physics.algebra import pairs
from mpilbm.physics.lattices import AXES, Lattice

EQUATIONS = "d = (rho, u) - shift; sums of d_rho, d_a and d_a d_b, in double"


class ColumnSums(KernelText):
    """A kernel that adds to sums at each x, over the rows of a plane in their order."""

    def __init__(self, role: str, equations: str):
        super().__init__(role, "columns", equations)
        self.argument("sums", "double*")
        self.argument("origin", "int64")

    def _declare(self, name, written):
        return super()._declare(name, written or name == "sums")


def sample_rows(lattice: Lattice) -> KernelText:
    """sums[plane, row, k] += contributions of the fluid cells of the row."""
    kernel = RowSums("sample_rows", EQUATIONS, adds=True)
    kernel.columns = _add(kernel, lattice, "(plane - origin) * rows + row", "total[{}]")
    return kernel


def sample_columns(lattice: Lattice) -> KernelText:
    """sums[plane, row, x, k] += contributions of a fluid cell; `kept_rows` is 1 or all rows."""
    kernel = ColumnSums("sample_columns", EQUATIONS)
    kernel.argument("kept_rows", "int")
    row = "(kept_rows > 1 ? row : 0)"
    place = f"((plane - origin) * kept_rows + {row}) * nx + x"
    D = lattice.D
    _add(kernel, lattice, place, f"sums[place * {1 + D + D * (D + 1) // 2} + {{}}]")
    return kernel


def _add(kernel: KernelText, lattice: Lattice, place: str, target: str) -> int:
    """Add the statements; returns the number of sums."""
    D, flags = lattice.D, flags_type(lattice)
    arguments = {"nx": "int", "rows": "int", "first": "int64", "flags": flags}
    arguments |= {"odd": "int"} if lattice.staggered else {}
    arguments |= {"rho_out": "real*", "u_out": "real*", "shift": "double*"}
    for name, type in arguments.items():
        kernel.argument(name, type)
    kernel.do(CELL)
    kernel.do(f"const int64 place = {place};")
    kernel.do("const int fluid = flags[((plane - first) * rows + row) * nx + x] & 1;")
    kernel.do(f"const double d_rho = (double)rho_out[cell] - shift[place * {1 + D}];")
    for a, axis in enumerate(AXES[:D]):
        shift = f"shift[place * {1 + D} + {1 + a}]"
        kernel.do(f"const double d_{axis} = (double)u_out[cell * {D} + {a}] - {shift};")
    terms = ["d_rho", *(f"d_{axis}" for axis in AXES[:D])]
    terms += [f"d_{AXES[a]} * d_{AXES[b]}" for a, b in pairs(D)]
    for k, term in enumerate(terms):
        kernel.do(f"if (fluid) {target.format(k)} += {term};")
    return len(terms)

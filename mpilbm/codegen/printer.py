"""SymPy expressions -> C text that a C compiler and NVRTC read alike."""

from sympy import Rational, Symbol
from sympy.printing.c import C99CodePrinter
from sympy.printing.precedence import PRECEDENCE


class KernelPrinter(C99CodePrinter):
    """Numbers in the kernel's precision, small integer powers as products.

    `R(a.0 / b.0)` is a rational in type `real`, folded by the compiler.
    """

    largest_product = 6

    def _print_Rational(self, expr):
        return f"R({expr.p}.0 / {expr.q}.0)"

    def _print_Float(self, expr):
        return f"R({float(expr)!r})"

    def _print_Integer(self, expr):
        return f"R({expr.p})"

    def _print_Half(self, expr):
        return "R(0.5)"

    def _print_Pi(self, expr):
        return f"R({float(expr)!r})"

    def _print_Pow(self, expr):
        base, exponent = expr.as_base_exp()
        if exponent == -Rational(1, 2):
            return f"R(1) / sqrt({self._print(base)})"
        if exponent.is_Integer and 0 < abs(int(exponent)) <= self.largest_product:
            factor = self.parenthesize(base, PRECEDENCE["Mul"])
            product = " * ".join([factor] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"R(1) / ({product})"
        return super()._print_Pow(expr)


_printer = KernelPrinter()


def c_text(expression) -> str:
    """C text of an expression in type `real`."""
    return _printer.doprint(expression)


def symbol(name: str) -> Symbol:
    """A real symbol; kernels name all their values so."""
    return Symbol(name, real=True)

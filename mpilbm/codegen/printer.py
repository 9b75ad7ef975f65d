"""SymPy expressions to C text that is valid for C compilers and for NVRTC."""

from functools import lru_cache

from sympy import Expr, Function, Mul, Rational, Symbol, fraction, sympify
from sympy.core.exprtools import decompose_power
from sympy.printing.c import C99CodePrinter
from sympy.printing.precedence import PRECEDENCE

from mpilbm.model.expressions import Expression


class AsStored(Function):
    """A value after storing and loading: narrowed and widened."""


class AsStoredOwn(Function):
    """A value after storing and loading, as a multiple of 1 / unit."""


class KernelPrinter(C99CodePrinter):
    """Numbers in the precision of the kernel, small integer powers as products.

    `R(a.0 / b.0)` is a fraction in type `real`. A product that is added is printed as MAD(a, b, c)
    = c + a*b or NMAD(a, b, c) = c - a*b, which a GPU may round once: if the compiler chose the
    products to fuse, it could round the same sum differently in two kernels. DIVIDE, QUOTIENT and
    LOG2_1P are the operations that `[precision] intrinsics` makes faster.
    """

    largest_product = 6
    divide, root = "DIVIDE", "sqrt"

    def __init__(self) -> None:
        super().__init__({"user_functions": FUNCTIONS})
        self._print = lru_cache(100_000)(super()._print)  # parts of an expression recur

    def _print_Rational(self, expr: Expr) -> str:
        return f"R({expr.p}.0 / {expr.q}.0)"

    def _print_Float(self, expr: Expr) -> str:
        return f"R({float(expr)!r})"

    def _print_Integer(self, expr: Expr) -> str:
        return f"R({expr.p})"

    def _print_Half(self, expr: Expr) -> str:
        return "R(0.5)"

    def _print_Pi(self, expr: Expr) -> str:
        return f"R({float(expr)!r})"

    def _print_AsStored(self, expr: Expr) -> str:
        return f"AS_STORED({self._print(expr.args[0])})"

    def _print_AsStoredOwn(self, expr: Expr) -> str:
        return f"AS_STORED_OWN({self._print(expr.args[0])})"

    def _print_Mul(self, expr: Expr) -> str:
        number, rest = expr.as_coeff_Mul()
        top, bottom = fraction(rest)
        if bottom == 1:
            return super()._print_Mul(expr)
        return f"{self.divide}({self._print(number * top)}, {self._print(bottom)})"

    def _print_held(self, expr: Expr) -> str:
        return f"({self._print(expr.args[0])})"

    def _print_log2(self, expr: Expr) -> str:
        return f"LOG2_1P({self._print(expr.args[0] - 1)})"

    def _print_Max(self, expr: Expr) -> str:
        return self._nested("LARGER", expr)

    def _print_Min(self, expr: Expr) -> str:
        return self._nested("SMALLER", expr)

    def _nested(self, function: str, expr: Expr) -> str:
        first, *rest = map(self._print, expr.args)
        for value in rest:
            first = f"{function}({first}, {value})"
        return first

    def _print_Add(self, expr: Expr, order: str | None = None) -> str:
        terms = [_signed(term) for term in ordered_terms(expr)]
        text = ""
        for minus, term in sorted(terms, key=lambda signed: bool(_product(signed[1]))):
            product = _product(term) if text else None
            if product:
                a, b = map(self._print, product)
                text = f"{'NMAD' if minus else 'MAD'}({a}, {b}, {text})"
            else:
                sign = f" {'-' if minus else '+'} " if text else "-" * minus
                text += sign + self.parenthesize(term, PRECEDENCE["Mul"])
        return text

    def _print_Pow(self, expr: Expr) -> str:
        base, exponent = expr.as_base_exp()
        if exponent == Rational(1, 2):
            return f"{self.root}({self._print(base)})"
        if exponent == -Rational(1, 2):
            return f"{self.divide}(R(1), {self.root}({self._print(base)}))"
        if exponent.is_Integer and 0 < abs(int(exponent)) <= self.largest_product:
            factor = self.parenthesize(base, PRECEDENCE["Mul"])
            product = " * ".join([factor] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"{self.divide}(R(1), {product})"
        return super()._print_Pow(expr)


class NormalPrinter(KernelPrinter):
    """Divisions and roots as the functions of sweep/copies.h, which have no branches."""

    divide, root = "quotient", "root"


def _signed(term: Expr) -> tuple[bool, Expr]:
    """(whether it is subtracted, the term without its sign)."""
    minus = term.as_coeff_Mul()[0].is_negative
    return minus, -term if minus else term


def _product(term: Expr) -> tuple[Expr, Expr] | None:
    """The two factors of a term without sign, or None; a quotient is not a product."""
    factors = term.as_ordered_factors()
    if any(f.is_Pow and f.exp.is_negative for f in factors):
        return None
    if len(factors) > 1:
        return Mul(*factors[:-1], evaluate=False), factors[-1]
    return (term.base, term.base) if term.is_Pow and term.exp == 2 else None


FUNCTIONS = {  # of mpilbm/core/formulas/trees.py, and of the prelude
    "quotient": "QUOTIENT",
    "binary_log": "log2_of",
    "power_of_two": "power_of_two",
    "power_of_two_less_one": "power_of_two_less_one",
}
_printer, _of_normal = KernelPrinter(), NormalPrinter()


def c_text(expression: Expression, normal: bool = False) -> str:
    """C text of an expression in type `real`.

    `normal`: divisors are normal numbers, quotients normal or 0, and no root is of a negative
    number; in the sweep only.
    """
    text = (_of_normal if normal else _printer)._print(sympify(expression))
    return "\n".join(_printer.indent_code(text.splitlines())) if "\n" in text else text


@lru_cache(100_000)
def symbol(name: str) -> Symbol:
    """A real symbol; all values of kernels have such symbols."""
    return Symbol(name, real=True)


def ordered_terms(expression: Expr) -> list[Expr]:
    """The terms of an expression, as `expression.as_ordered_terms()` returns them, in less time.

    The order is lexicographic in the powers of all factors, then that of the coefficients. Sums
    with numbers that are not rational are left to SymPy.
    """
    if not expression.is_Add:
        return [expression]
    terms = expression.args
    if len(terms) == 2 and any(term.is_Number for term in terms):
        return expression.as_ordered_terms()  # 1 - x, but x + 1
    powers, coefficients = [], []
    factors: set[Expr] = set()
    for term in terms:
        coefficient, rest = term.as_coeff_Mul()
        found = _powers(rest)
        if found is None or not coefficient.is_Rational:
            return expression.as_ordered_terms()
        powers.append(found)
        coefficients.append(coefficient.p / coefficient.q)
        factors.update(found)
    generators = sorted(factors, key=lambda factor: factor.sort_key())
    keys = [
        ([-found.get(factor, 0) for factor in generators], coefficient)
        for found, coefficient in zip(powers, coefficients, strict=True)
    ]
    return [terms[k] for k in sorted(range(len(terms)), key=keys.__getitem__)]


def _powers(product: Expr) -> dict[Expr, int] | None:
    """The exponents of the factors of a product without coefficient; None with a number."""
    found: dict[Expr, int] = {}
    for factor in product.args if product.is_Mul else (product,):
        if factor.is_Symbol:
            found[factor] = 1
        elif factor.is_number:
            if product.is_Number:
                return {}  # 1, of a term that is a number
            return None
        else:
            base, exponent = decompose_power(factor)
            found[base] = exponent
    return found

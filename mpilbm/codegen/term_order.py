"""The order of the terms of a sum in kernel texts, which is that of SymPy's `as_ordered_terms`."""

from sympy import Expr
from sympy.core.exprtools import decompose_power


def ordered_terms(expression: Expr) -> list[Expr]:
    """The terms of an expression, as `expression.as_ordered_terms()` returns them, in less time.

    The order is lexicographic in the powers of all factors, then that of the coefficients, which
    SymPy evaluates as complex numbers. Sums with numbers that are not rational are left to SymPy.
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

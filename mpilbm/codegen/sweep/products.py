"""C text of sums of products in the moment sweep: products that are added are written as fma."""

from math import prod

from sympy import sympify
from sympy.core import Add, Mul

from mpilbm.codegen.printer import c_text, symbol
from mpilbm.model.expressions import Expression

POSITIVE = {"UNIT", "rho", "inverse"}


def fused(expression: Expression, products_last: bool = False, normal: bool = False) -> str:
    """C text with each added product written as an fma, from left to right.

    `products_last`: the other terms of a sum come first, so that no product is rounded. `normal`:
    as in `c_text`.
    """

    def part(value: Expression) -> str:
        return fused(value, products_last, normal)

    if isinstance(expression, Add):
        terms = expression.as_ordered_terms()
        if products_last:
            terms.sort(key=lambda term: isinstance(term, Mul))
        text = part(terms[0])
        for term in terms[1:]:
            if isinstance(term, Mul):
                first, rest = term.args[0], Mul(*term.args[1:])
                factors = part(first), part(rest)
                text = f"fma({factors[0]}, {factors[1]}, {text})"
            else:
                text = f"({text} + {part(term)})"
        return text
    if isinstance(expression, Mul):
        texts = [(isinstance(a, Add), part(a)) for a in expression.args]
        return " * ".join(f"({text})" if is_sum else text for is_sum, text in texts)
    return c_text(expression, normal)


def of_empty_cells(value: Expression, named: str) -> str:
    """C text of a stored value where the weight of this name is 0.

    With the bits of `fused`, also of zeros: a factor that is -1 has no rounding, and a term that is
    0 keeps its sign.
    """
    weight, text = symbol(named), ""
    for term in value.as_ordered_terms() if isinstance(value, Add) else [value]:
        sign, factors, zero = 1, [], False
        for factor in Mul.make_args(term):
            known = factor.xreplace({weight: sympify(0)})
            zero |= known == 0
            if known in (1, -1) and known != factor:
                sign *= int(known)
            elif known != 0:
                factors.append(known)
        if zero:
            odd = [f for f in factors if str(f) not in POSITIVE and not _even(f)]
            signs = [sign, *(1 if f > 0 else -1 for f in odd if f.is_Number)]
            others = [f"({fused(f)})" for f in odd if not f.is_Number]
            product = " * ".join([f"R({'-' if prod(signs) < 0 else ''}0.0)", *others])
            text = f"({text} + {product})" if text else product
            continue
        texts = [f"({fused(f)})" if isinstance(f, Add) else fused(f) for f in factors]
        texts[0] = texts[0] if sign > 0 else f"-{texts[0]}"
        if text and len(texts) > 1:
            text = f"fma({texts[0]}, {' * '.join(texts[1:])}, {text})"
        else:
            product = " * ".join(texts)
            text = f"({text} + {product})" if text else product
    return text


def _even(factor: Expression) -> bool:
    """Whether a factor is an even power."""
    return bool(factor.is_Pow and factor.exp.is_Integer and factor.exp % 2 == 0)

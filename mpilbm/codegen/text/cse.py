"""Common subexpressions, chosen such that a GPU can fuse products with the sums that add them."""

from collections.abc import Sequence

from sympy import Mul, Symbol, cse, numbered_symbols

from mpilbm.model.expressions import Expression

Shared = tuple[list[tuple[Symbol, Expression]], list[Expression]]


def share(expressions: Sequence[Expression]) -> Shared:
    """(name, expression) of each common part, and the expressions in terms of these names.

    If a common part a*(b + c) occurs only as a term of sums, b + c gets the name instead: a*name +
    d then costs no more than an addition.
    """
    names, wanted = cse(expressions, numbered_symbols("t", real=True))
    values = [*(value for _, value in names), *wanted]
    symbols = [value.free_symbols for value in values]
    for k, (name, _) in enumerate(names):
        value = values[k]
        sums = [factor for factor in value.args if factor.is_Add] if value.is_Mul else []
        if len(sums) != 1:
            continue
        users = [n for n, used in enumerate(symbols) if name in used]
        if not all(_adds(values[n], name) for n in users):
            continue
        scaled = {name: Mul(*(factor for factor in value.args if not factor.is_Add)) * name}
        values[k] = sums[0]
        for n in users:
            values[n] = values[n].xreplace(scaled)
        for n in (k, *users):
            symbols[n] = values[n].free_symbols
    parts = [(name, value) for (name, _), value in zip(names, values, strict=False)]
    return parts, values[len(names) :]


def _adds(expression: Expression, name: Symbol) -> bool:
    """Whether a name occurs only as a term of a sum."""
    terms = expression.args if expression.is_Add else ()
    return any(term in (name, -name) for term in terms) and all(
        term in (name, -name) or name not in term.free_symbols for term in terms
    )

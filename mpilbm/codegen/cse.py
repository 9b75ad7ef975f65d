"""Common parts of expressions, so chosen that a product which is added stays beside its sum."""

from sympy import Mul, cse, numbered_symbols


def share(expressions: list) -> tuple[list, list]:
    """(name, expression) of each common part, and what the expressions become.

    A common part a*(b + c) that is only ever added gives its name to b + c: a*name + d then costs
    no more than an addition.
    """
    names, wanted = cse(expressions, numbered_symbols("t", real=True))
    parts = [[name, value] for name, value in names]
    for part in parts:
        name, value = part
        users = [e for e in (*(v for _, v in parts), *wanted) if name in e.free_symbols]
        sums = [factor for factor in value.args if factor.is_Add] if value.is_Mul else []
        if len(sums) != 1 or not all(_adds(user, name) for user in users):
            continue
        part[1] = sums[0]
        scaled = {name: Mul(*(factor for factor in value.args if not factor.is_Add)) * name}
        for other in parts:
            other[1] = other[1].xreplace(scaled)
        wanted = [e.xreplace(scaled) for e in wanted]
    return [tuple(part) for part in parts], wanted


def _adds(expression, name) -> bool:
    """Whether a name is but a term of a sum."""
    terms = expression.args if expression.is_Add else ()
    return any(term in (name, -name) for term in terms) and all(
        term in (name, -name) or name not in term.free_symbols for term in terms
    )

"""Common subexpressions of kernels: those of `sympy.cse`, found in less time.

There are two passes. The first gives sums that share terms, and products that share factors, a
common part, and takes the sign out of sums and products that are mostly negative; the second names
what then occurs several times. All symbols are real, so all products commute.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Add, Basic, Expr, Mul, Pow, S, Symbol, Tuple, numbered_symbols
from sympy.core.sorting import default_sort_key

from mpilbm.codegen.printer import ordered_terms


@dataclass(frozen=True, eq=False)
class Form:
    """An operation that replaces an expression, before SymPy evaluates it."""

    func: type[Basic]
    args: tuple["Part", ...]

    is_Add = is_Mul = False  # noqa: N815 (SymPy's names)


Part = Any  # a SymPy expression or a Form
Forms = dict[Part, Part]  # by the expression that they replace
Named = tuple[list[tuple[Symbol, Basic]], list[Basic]]


def common_parts(expressions: Sequence[Basic]) -> Named:
    """(name, expression) of each common part, and the expressions in terms of these names.

    The result is that of `sympy.cse(expressions, numbered_symbols("t", real=True))`.
    """
    return _Naming(expressions, _forms(expressions)).named(expressions)


def _forms(expressions: Sequence[Basic]) -> Forms:
    """The forms of sums, products and powers with which they have more parts in common."""
    found: Forms = {}
    seen: set[Basic] = set()
    sums: dict[Basic, None] = {}  # in order
    products: dict[Basic, None] = {}

    def visit(expression: Basic) -> None:
        """Note the sums and products of an expression, and forms without a sign in front."""
        if not expression.args or expression in seen:
            return
        for each in expression.args:
            visit(each)
        if isinstance(expression, Tuple):  # a branch of Piecewise
            return
        seen.add(expression)
        if _mostly_negative(expression):
            negative = _negative(expression)
            if negative.args:
                found[expression] = Form(Mul, (S.NegativeOne, negative))
                seen.add(negative)
                expression = negative
        if expression.is_Mul:
            products[expression] = None
        elif expression.is_Add:
            sums[expression] = None
        elif expression.is_Pow and _mostly_negative(expression.exp):
            power = Pow(expression.base, -expression.exp)
            found[expression] = Form(Pow, (power, S.NegativeOne))

    for expression in expressions:
        visit(expression)
    _match(Add, sums, found)
    _match(Mul, dict.fromkeys(map(_evaluated, products)), found)
    return found


def _evaluated(product: Mul) -> Expr:
    """A product as SymPy evaluates it, also one with a number times a sum, or with products."""
    first, *others = product.args
    scaled = first.is_Number and len(others) == 1
    return Mul(*product.args) if scaled or any(f.is_Mul for f in product.args) else product


def _negative(expression: Expr) -> Expr:
    return Add(*(-term for term in expression.args)) if expression.is_Add else -expression


@lru_cache(100_000)
def _mostly_negative(expression: Basic) -> bool:
    """Whether SymPy takes the sign out of an expression, as `could_extract_minus_sign` says."""
    if expression.is_Mul:
        return bool(expression.args[0].is_Number and expression.args[0].is_negative)
    if not expression.is_Add:
        return expression.could_extract_minus_sign()
    negative = sum(map(_mostly_negative, expression.args))
    if 2 * negative != len(expression.args):
        return 2 * negative > len(expression.args)
    one, other = (
        [term.sort_key() for term in ordered_terms(sign)]
        for sign in (expression, _negative(expression))
    )
    return one < other


def _match(func: type[Basic], found_operations: Iterable[Basic], forms: Forms) -> None:
    """Add the forms of sums (or products) in which terms that several of them share are a part.

    Each is compared with those of at least as many terms, in the order of the terms in common.
    """
    operations = sorted(found_operations, key=lambda operation: len(operation.args))
    numbers: dict[Part, int] = {}  # of the terms
    terms: list[Part] = []
    users: list[set[int]] = []  # the operations with a term, by its number

    def number(term: Part) -> int:
        if term not in numbers:
            numbers[term] = len(terms)
            terms.append(term)
            users.append(set())
        return numbers[term]

    parts = [{number(term) for term in operation.args} for operation in operations]
    for i, own in enumerate(parts):
        for n in own:
            users[n].add(i)

    def replace(i: int, common: set[int], part: int) -> None:
        for n in common:
            users[n].discard(i)
        users[part].add(i)
        parts[i] = (parts[i] - common) | {part}
        changed.add(i)

    def form(own: set[int]) -> Form:
        return Form(func, tuple(terms[n] for n in sorted(own)))

    changed: set[int] = set()
    for i, operation in enumerate(operations):
        candidates = _sharing(i, [users[n] for n in parts[i]])
        waiting = set(candidates)
        for j in candidates:
            if j not in waiting:
                continue
            waiting.discard(j)
            common = parts[i] & parts[j]
            if len(common) < 2:
                continue
            if common == parts[i]:
                part = number(operation)
            else:
                part = number(form(common))
                replace(i, common, part)
            replace(j, common, part)
            for k in waiting.intersection(*(users[n] for n in common)):
                replace(k, common, part)
        if i in changed:
            forms[operation] = form(parts[i])
        for n in parts[i]:
            users[n].discard(i)


def _sharing(i: int, users: list[set[int]]) -> list[int]:
    """The operations after i that use at least two of its terms, those with fewest first."""
    *others, most = sorted(users, key=len)
    counts: dict[int, int] = defaultdict(int)
    for each in others:
        for k in each:
            counts[k] += 1
    for k in counts:
        counts[k] += k in most
    return sorted((k for k in counts if k > i and counts[k] > 1), key=lambda k: (counts[k], k))


class _Naming:
    """Names the parts of expressions that occur several times in their forms."""

    def __init__(self, expressions: Sequence[Basic], forms: Forms) -> None:
        self.forms = forms
        self.seen: set[Part] = set()
        self.repeated: set[Part] = set()
        self.taken: set[str] = set()  # names of symbols
        for expression in expressions:
            self._count(expression)
        self.known: dict[Part, Symbol] = {}
        self.parts: list[tuple[Symbol, Basic]] = []

    def named(self, expressions: Sequence[Basic]) -> Named:
        """The common parts, and the expressions in terms of their names."""
        names = numbered_symbols("t", real=True)
        self.names = (name for name in names if name.name not in self.taken)
        return self.parts, [self._rebuilt(expression) for expression in expressions]

    def _count(self, expression: Part) -> None:
        if not expression.args:
            if expression.is_Symbol:
                self.taken.add(expression.name)
            return
        if not isinstance(expression, Tuple):
            if expression in self.seen:
                self.repeated.add(expression)
                return
            self.seen.add(expression)
        form: Part = self.forms.get(expression, expression)
        for each in form.args:
            self._count(each)

    def _rebuilt(self, expression: Part) -> Basic:
        if not expression.args:
            return expression
        if expression in self.known:
            return self.known[expression]
        form: Part = self.forms.get(expression, expression)
        args = _ordered(form) if form.is_Mul or form.is_Add else list(form.args)
        rebuilt = list(map(self._rebuilt, args))
        value = form.func(*rebuilt) if isinstance(form, Form) or rebuilt != args else form
        if expression not in self.repeated:
            return value
        name = self.known[expression] = next(self.names)
        self.parts.append((name, value))
        return name


def _ordered(operation: Expr) -> list[Expr]:
    """The terms of a sum, or the factors of a product, in an order that is always the same."""
    by_size: dict[int, list[Expr]] = defaultdict(list)
    for each in operation.args if operation.is_Add else operation.args_cnc()[0]:
        by_size[_size(each)].append(each)
    sizes = sorted(by_size)
    return [each for size in sizes for each in sorted(by_size[size], key=default_sort_key)]


@lru_cache(100_000)
def _size(expression: Basic) -> int:
    """The number of nodes of the tree of an expression."""
    return 1 + sum(map(_size, expression.args))

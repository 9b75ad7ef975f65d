"""Formulas of the TOML: our own walk over Python's ast, never eval.

A text is parsed once into a small tree: a number, a name, or (operation, branch, …). One walk over
the tree, with a table of functions, gives NumPy arrays or a SymPy expression.
"""

import ast
import difflib
import operator
import warnings
from functools import cache, lru_cache, reduce
from math import isfinite, pi

import numpy as np

from mpilbm.formulas.functions import power

Tree = float | int | str | tuple  # a number, a name, or (operation, branch, …)
NAMES = ("x", "y", "z", "nx", "ny", "nz", "t", "pi")
LENGTH, DEPTH, EXPONENT = 500, 50, 16

_SIGNS = {ast.UAdd: "+", ast.USub: "neg"}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_TRUTHS = {*_COMPARISONS.values(), "and"}
_NUMPY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": np.logical_and,
    "where": np.where,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "tanh": np.tanh,
}
FUNCTIONS = ("where", "sin", "cos", "tan", "exp", "log", "sqrt", "abs", "min", "max", "tanh")


class FormulaError(ValueError):
    """What is wrong with a formula, and what is allowed."""


class Formula:
    """A formula in the given names and in pi, `+ - * / **`, comparisons and FUNCTIONS.

    Raises FormulaError for anything else, for a text longer than LENGTH or nested deeper than
    DEPTH, for exponents that are not integers within ±EXPONENT, and for a part without names that
    is infinite or not a number.
    """

    def __init__(self, text: str, names: tuple[str, ...] = NAMES):
        self.text = text
        self.tree = _checked(text, names)
        self.names = frozenset(names_of(self.tree)) - {"pi"}

    def __repr__(self):
        return f"Formula({self.text!r})"

    def evaluate(self, **values) -> np.ndarray:
        """The formula as float64, in the shape to which the values (arrays, numbers) broadcast.

        What divides by zero is infinite or nan, without a warning.
        """
        return numeric(self.tree, values)

    def symbolic(self):
        """The formula as a SymPy expression of real symbols; decimal numbers are exact."""
        import sympy

        return symbolic(self.tree, {name: sympy.Symbol(name, real=True) for name in self.names})


def numeric(tree: Tree, values: dict, kind=np.float64) -> np.ndarray:
    """A tree with values for its names, as Formula.evaluate; computed in a kind of numbers."""
    with np.errstate(all="ignore"):
        known = {key: np.asarray(value, kind) for key, value in values.items()}
        result = _walk(tree, _NUMPY, {"pi": kind(pi)} | known, kind)
    return np.asarray(result, np.float64)


def symbolic(tree: Tree, symbols: dict):
    """A tree as a SymPy expression of these symbols; decimal numbers are exact."""
    import sympy

    table, names = _sympy_table(), symbols | {"pi": sympy.pi}
    return _walk(tree, table, names, lambda n: sympy.Rational(repr(n)))


def _walk(tree, table, names, number):
    """Value of the tree: `number` makes leaves of numbers, `names` and `table` give the rest."""
    if isinstance(tree, str):
        return names[tree]
    if not isinstance(tree, tuple):
        return number(tree)
    if tree[0] == "**":
        return table["**"](_walk(tree[1], table, names, number), tree[2])
    return table[tree[0]](*(_walk(branch, table, names, number) for branch in tree[1:]))


@cache
def _sympy_table():
    """The operations of _NUMPY for SymPy; imported here since a start from the cache needs none."""
    import sympy

    same = ("+", "-", "*", "/", "neg", "<", "<=", ">", ">=")
    named = ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh")
    return (
        {name: _NUMPY[name] for name in same}
        | {name: getattr(sympy, name) for name in named}
        | {"==": sympy.Eq, "!=": sympy.Ne, "and": sympy.And}
        | {"abs": sympy.Abs, "min": sympy.Min, "max": sympy.Max}
        | {"**": power}
        | {"where": lambda truth, a, b: sympy.Piecewise((a, truth), (b, True))}
    )


@lru_cache(maxsize=256)
def _checked(text: str, names: tuple[str, ...]) -> Tree:
    """The tree of a text, which many planes and steps ask for again."""
    tree = _read(text, names)
    if is_truth(tree):
        raise FormulaError(f"'{text}' is a comparison; write where({text}, a, b)")
    _constant(tree)
    return tree


def _read(text: str, names):
    """The tree of a text."""
    if len(text) > LENGTH:
        raise FormulaError(f"has {len(text)} characters; allowed: at most {LENGTH}")
    if "\0" in text:  # each version of Python has its own words for it
        raise FormulaError(f"{_short(text)} is not a formula: it has a null character")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _branch(ast.parse(text.strip(), mode="eval").body, names, 1)
    except FormulaError:
        raise
    except SyntaxError as error:
        text = text.strip()
        wrong = f"{_short(text)} is not a formula: {error.msg}{_place(text, error)}"
        raise FormulaError(f"{wrong}; allowed: {_allowed(names)}") from None
    except (ValueError, RecursionError, MemoryError):
        raise FormulaError(f"{_short(text)}: odd characters, or nested too deep") from None


def _short(text: str) -> str:
    """A text in quotes, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _place(text: str, error: SyntaxError) -> str:
    """Where a text has a syntax error, with what is there; Python places its end at 0."""
    line = "".join(text.splitlines()[(error.lineno or 1) - 1 :][:1])
    at = f" of line {error.lineno}" if "\n" in text else ""
    if not error.offset or error.offset > len(line):
        return f" (at the end{at})"
    return f" (at {line[error.offset - 1 :][:12]!r}, character {error.offset}{at})"


def _allowed(names) -> str:
    """What a formula may be made of."""
    return f"numbers, {', '.join(names)}, + - * / **, comparisons and {', '.join(FUNCTIONS)}"


def _branch(node, names, depth: int):
    """The tree of one node of the ast; everything that is not named here is refused."""
    if depth > DEPTH:
        raise FormulaError(f"is nested deeper than {DEPTH}")
    if isinstance(node, ast.Constant):
        return _number(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise FormulaError(_unknown("name", node.id, names, FUNCTIONS))
        return node.id
    if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        operand = _number_branch(node.operand, names, depth)
        return operand if isinstance(node.op, ast.UAdd) else ("neg", operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left = _number_branch(node.left, names, depth)
        if isinstance(node.op, ast.Pow):
            return "**", left, _exponent(node.right)
        return _ARITHMETIC[type(node.op)], left, _number_branch(node.right, names, depth)
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        sides = [_number_branch(side, names, depth) for side in (node.left, *node.comparators)]
        symbols = [_COMPARISONS[type(op)] for op in node.ops]
        pairs = zip(symbols, sides[:-1], sides[1:], strict=True)  # a < b < c is a < b and b < c
        return reduce(lambda first, second: ("and", first, second), pairs)
    if isinstance(node, ast.Call):
        return _call(node, names, depth)
    power = isinstance(getattr(node, "op", None), ast.BitXor)
    mend = "; write a power as x**2" if power else ""
    raise FormulaError(
        f"'{ast.unparse(node)[:60]}' is not allowed in a formula; allowed: {_allowed(names)}{mend}"
    )


def _number_branch(node, names, depth: int):
    tree = _branch(node, names, depth + 1)
    if is_truth(tree):
        raise FormulaError(
            f"'{ast.unparse(node)[:60]}' is a comparison where a number is wanted; "
            "write where(comparison, a, b)"
        )
    return tree


def _number(value):
    """An int or float; not a string, a bool or a complex number."""
    if type(value) not in (int, float):
        raise FormulaError(f"{value!r} is not a number")
    if not abs(value) < 1e300:
        raise FormulaError("holds a number above 1e300")
    return value


def _exponent(node) -> int:
    """An integer constant within ±EXPONENT, so that no power can take for ever."""
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -sign, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) not in (int, float) or value != value // 1 or value > EXPONENT:
        raise FormulaError(
            f"exponent '{ast.unparse(node)[:60]}': allowed: integers from -{EXPONENT} to "
            f"{EXPONENT}; else use sqrt(x) or exp(a*log(x))"
        )
    return sign * int(value)


def _call(node, names, depth: int):
    """A call of one of FUNCTIONS by its name, with plain arguments."""
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in FUNCTIONS:
        raise FormulaError(_unknown("function", ast.unparse(node.func)[:60], FUNCTIONS))
    count = len(node.args)
    wanted = {"where": "3 arguments: comparison, a, b", "min": "2 or more", "max": "2 or more"}
    right = {"where": count == 3, "min": count >= 2, "max": count >= 2}.get(name, count == 1)
    if node.keywords or not right or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise FormulaError(f"{name}() takes {wanted.get(name, '1 argument')}, found {count}")
    if name != "where":
        return name, *(_number_branch(arg, names, depth) for arg in node.args)
    condition = _branch(node.args[0], names, depth + 1)
    if not is_truth(condition):
        raise FormulaError("where() takes a comparison first: where(x < 3, a, b)")
    return "where", condition, *(_number_branch(arg, names, depth) for arg in node.args[1:])


def is_truth(tree: Tree) -> bool:
    """Whether it is a comparison."""
    return isinstance(tree, tuple) and tree[0] in _TRUTHS


def names_of(tree: Tree):
    """All names in a tree, `pi` too."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree[1:]:
            yield from names_of(branch)


def _constant(tree):
    """Value of a tree without free names, None of another; FormulaError if it is not finite."""
    if not isinstance(tree, tuple):
        return None if isinstance(tree, str) and tree != "pi" else tree
    branches = [_constant(branch) for branch in tree[1:]]
    if tree[0] == "/" and branches[1] is not None and branches[1] == 0:
        raise FormulaError("divides by zero; change the divisor")
    if None in branches:
        return None
    with np.errstate(all="ignore"):
        value = float(_walk(tree, _NUMPY, {"pi": pi}, np.float64))
    if not isfinite(value):
        raise FormulaError(
            f"a part without names is {value}: a division by zero or too large; change that part"
        )
    return value


def _unknown(what: str, found: str, *allowed) -> str:
    """The sentence on a name that is not known: those that are, and the nearest."""
    everything = [name for names in allowed for name in names]
    near = difflib.get_close_matches(found, everything, 1, 0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown {what} '{found}'; allowed: {', '.join(everything)}{hint}"

"""Converts functions of a Python program into formulas.

The function is called once with symbols in place of arrays. Each symbol records the arithmetic and
the NumPy functions that are applied to it, as the text of a formula. The formula is then a part of
the case like one that a user has written: kernels evaluate it, and checkpoints contain it.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mpilbm.core.formulas.parser import EXPONENT, LENGTH, Formula
from mpilbm.core.formulas.trees import FormulaError


class NotAFormula(ValueError):
    """A function that cannot be written as a formula; the message is the reason."""


def formulas_of(
    function: Callable[..., Any], names: Sequence[str], count: int
) -> list[str | float]:
    """Return the `count` components of `function(*names)`, each a number or the text of a formula.

    Conditions of Python (`if x > 0`), values of single cells and functions that formulas do not
    have raise NotAFormula.
    """
    try:
        found = function(*(Symbol(name) for name in names))
    except NotAFormula:
        raise
    except Exception as error:  # anything that arrays can do and symbols cannot
        raise NotAFormula(f"{type(error).__name__}: {error}") from None
    parts = list(found) if isinstance(found, list | tuple | np.ndarray) else [found]
    if len(parts) != count:
        raise NotAFormula(f"it returns {len(parts)} values for symbols, {count} are required")
    return [_component(part, tuple(names)) for part in parts]


def _component(value: Any, names: tuple[str, ...]) -> str | float:
    text = _text(value)
    if not isinstance(value, Symbol):
        return float(text)
    try:
        Formula(text, names)
    except FormulaError as error:
        more = f", at most {LENGTH} are allowed" if len(text) > LENGTH else ""
        raise NotAFormula(f"its formula {error}{more}") from None
    return text


class Symbol(NDArrayOperatorsMixin):
    """A number (`truth` False) or a condition (`truth` True), as the text of a formula."""

    def __init__(self, text: str, truth: bool = False):
        self.text, self.truth = text, truth

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        rule = _UFUNCS.get(ufunc.__name__)
        if rule is None or method != "__call__" or options:
            raise NotAFormula(f"formulas have no numpy.{ufunc.__name__}")
        return rule(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        rule = _FUNCTIONS.get(function.__name__)
        if rule is None:
            raise NotAFormula(f"formulas have no numpy.{function.__name__}")
        return rule(*args, **options)

    def __bool__(self) -> bool:
        raise NotAFormula("it decides with `if`, `and` or `or`; numpy.where(…) does it for arrays")

    def __float__(self) -> float:
        raise NotAFormula("it converts its argument to a single number")

    __int__ = __index__ = __len__ = __float__  # type: ignore[assignment]


def _text(value: Any) -> str:
    """The text of a number; a condition becomes 1 or 0."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, Symbol):
        return f"where({value.text}, 1, 0)" if value.truth else value.text
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if not isinstance(value, Real | np.number):
        raise NotAFormula(f"it combines its arguments with a value of type {type(value).__name__}")
    number: Any = value.item() if isinstance(value, np.generic) else value
    if not isfinite(number):
        raise NotAFormula(f"it contains {number}")
    return repr(number) if number >= 0 else f"({number!r})"


def _condition(value: Any) -> str:
    """The text of a condition; a number is true unless it is 0."""
    return value.text if isinstance(value, Symbol) and value.truth else f"{_text(value)} != 0"


def _infix(operator: str) -> Callable[..., Any]:
    return lambda a, b: Symbol(f"({_text(a)} {operator} {_text(b)})")


def _comparison(operator: str) -> Callable[..., Any]:
    return lambda a, b: Symbol(f"{_text(a)} {operator} {_text(b)}", truth=True)


def _call(name: str) -> Callable[..., Any]:
    return lambda *values: Symbol(f"{name}({', '.join(map(_text, values))})")


def _chosen(condition: Any, yes: Any, no: Any) -> "Symbol":
    return Symbol(f"where({_condition(condition)}, {_text(yes)}, {_text(no)})")


def _is_one(value: "Symbol") -> "Symbol":
    return Symbol(f"{value.text} > 0", truth=True)


def _power(base: Any, exponent: Any) -> "Symbol":
    """base ** exponent; exp(exponent log(base)) where formulas have no such power."""
    if isinstance(exponent, Symbol):
        return Symbol(f"exp({_text(exponent)} * log({_text(base)}))")
    number = float(_text(exponent).strip("()"))
    if number.is_integer() and abs(number) <= EXPONENT:
        return Symbol(f"({_text(base)})**{int(number)}")
    if number.is_integer():
        raise NotAFormula(f"formulas have no power {number:g}")
    if number == 0.5:
        return Symbol(f"sqrt({_text(base)})")
    return Symbol(f"exp({_text(exponent)} * log({_text(base)}))")


def _clipped(value: Any, low: Any = None, high: Any = None) -> Any:
    value = value if low is None else _call("max")(value, low)
    return value if high is None else _call("min")(value, high)


def _added(a: Any, b: Any) -> Any:
    """The sum; as in NumPy the sum of two conditions is a condition."""
    if all(isinstance(v, bool | np.bool_) or (isinstance(v, Symbol) and v.truth) for v in (a, b)):
        return _UFUNCS["logical_or"](a, b)
    return _infix("+")(a, b)


_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _added,
    "subtract": _infix("-"),
    "multiply": _infix("*"),
    "divide": _infix("/"),
    "negative": lambda a: Symbol(f"(-{_text(a)})"),
    "positive": lambda a: a,
    "power": _power,
    "float_power": _power,
    "square": lambda a: _power(a, 2),
    "reciprocal": lambda a: _infix("/")(1, a),
    "hypot": lambda a, b: Symbol(f"sqrt(({_text(a)})**2 + ({_text(b)})**2)"),
    "cosh": lambda a: Symbol(f"((exp({_text(a)}) + exp(-{_text(a)})) / 2)"),
    "sinh": lambda a: Symbol(f"((exp({_text(a)}) - exp(-{_text(a)})) / 2)"),
    "absolute": _call("abs"),
    "fabs": _call("abs"),
    "minimum": _call("min"),
    "maximum": _call("max"),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "equal": _comparison("=="),
    "not_equal": _comparison("!="),
    "logical_and": lambda a, b: _is_one(_chosen(a, _chosen(b, 1, 0), 0)),
    "logical_or": lambda a, b: _is_one(_chosen(a, 1, _chosen(b, 1, 0))),
    "logical_not": lambda a: _is_one(_chosen(a, 0, 1)),
}
_UFUNCS |= {name: _call(name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh")}
_UFUNCS |= {f"bitwise_{way}": _UFUNCS[f"logical_{way}"] for way in ("and", "or")}
_UFUNCS["invert"] = _UFUNCS["logical_not"]


def _stacked(values: Sequence[Any], axis: int = 0) -> list[Any]:
    return list(values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _chosen,
    "clip": _clipped,
    "zeros_like": lambda like, **_: 0.0,
    "ones_like": lambda like, **_: 1.0,
    "full_like": lambda like, value, **_: value,
    "stack": _stacked,
}

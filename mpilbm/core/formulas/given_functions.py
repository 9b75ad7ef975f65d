"""Functions and arrays of a Python program as values of a case, and the texts that refer to them.

A function is f(x, y[, z][, t]) with arrays of points.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilbm.core.errors import CaseError
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.ramp import rise
from mpilbm.core.formulas.tracing import NotAFormula, formulas_of

Floats = NDArray[np.float64]
SAMPLES = 7  # points at which a function is called when its case is read
TIMES = (0.0, 3.0, 1000.0)  # of these calls
SAME = 1e-9  # largest difference from its formula there, relative to the largest value


class GivenFunction:
    """A function of x, y (and z), and of t if it has one more argument.

    It gets float64 arrays of one shape: coordinates of points in cells (cell centres are 0.5, 1.5,
    …), and the time in steps as a number. The value at a point must depend on this point and t
    only. `where` and `path` are the key path and the case file, for messages. All methods raise
    CaseError for an error in the function and for values of a wrong shape or type.
    """

    def __init__(self, call: Callable[..., Any], dimensions: int, where: str, path: Any = None):
        self.call, self.dimensions, self.where, self.path = call, dimensions, where, path
        self.name = getattr(call, "__name__", type(call).__name__)
        self.timed = self._takes_time()

    def _takes_time(self) -> bool:
        """Whether the function has an argument for the time."""
        try:
            parameters = list(inspect.signature(self.call).parameters.values())
        except (TypeError, ValueError):
            return False  # a function without a signature, such as those of NumPy
        usual = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return True
        required = sum(p.default is p.empty for p in usual)
        named = len(usual) > self.dimensions and usual[self.dimensions].name == "t"
        if required <= self.dimensions <= len(usual) and not named:
            return False
        if required <= self.dimensions + 1 <= len(usual):
            return True
        axes = ", ".join("xyz"[: self.dimensions])
        raise self._error(f"takes {required} arguments; allowed: ({axes}) or ({axes}, t)")

    def _error(self, problem: str) -> CaseError:
        return CaseError(f"the function '{self.name}' {problem}", self.where, self.path)

    def _called(self, places: Sequence[Any], t: float) -> Any:
        arguments = (*places, float(t)) if self.timed else places
        try:
            with np.errstate(all="ignore"):
                return self.call(*arguments)
        except Exception as error:
            last = extract_tb(error.__traceback__)[-1]
            place = f"line {last.lineno} of {Path(last.filename).name}"
            raise self._error(
                f"raised {type(error).__name__}: {error} ({place}, t = {t:g}); it gets float64 "
                "arrays of equal shape for the coordinates, for which NumPy's functions work"
            ) from error

    def scalar(self, places: Sequence[Any], t: float) -> Floats:
        """The value at points (arrays of one shape) at time t, in the shape of the arrays."""
        return self._numbers(self._called(places, t), np.shape(places[0]), "a number per point")

    def vector(self, places: Sequence[Any], t: float, count: int) -> list[Floats]:
        """The `count` components at points at time t, each in the shape of the arrays."""
        found, shape = self._called(places, t), np.shape(places[0])
        wanted = f"{count} components: a tuple ({', '.join('uvw'[:count])}), or an array whose "
        wanted += "last axis has the components"
        if isinstance(found, np.ndarray):
            if found.shape != (*shape, count):
                raise self._error(
                    f"returns an array of shape {found.shape} for points of shape "
                    f"{shape}; allowed: {wanted}"
                )
            found = list(np.moveaxis(found, -1, 0))
        if not isinstance(found, list | tuple) or len(found) != count:
            many = f"{len(found)} values" if isinstance(found, list | tuple) else "one value"
            raise self._error(f"returns {many}; allowed: {wanted}")
        return [self._numbers(part, shape, wanted) for part in found]

    def truth(self, places: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether each point (arrays that broadcast) is inside."""
        places = [np.ascontiguousarray(each) for each in np.broadcast_arrays(*places)]
        found, shape = np.asarray(self._called(places, 0.0)), places[0].shape
        if found.dtype != bool or found.shape not in ((), shape):
            raise self._error(
                f"returns {found.dtype} values of shape {found.shape} for points of shape {shape}; "
                "allowed: a bool for each point, as x < 10 gives it"
            )
        return np.broadcast_to(found, shape)

    def _numbers(self, values: Any, shape: tuple[int, ...], wanted: str) -> Floats:
        found = np.asarray(values)
        if found.dtype.kind not in "biuf" or found.shape not in ((), shape):
            raise self._error(
                f"returns {found.dtype} values of shape {found.shape} for points of shape {shape}; "
                f"allowed: {wanted}"
            )
        return np.ascontiguousarray(np.broadcast_to(found, shape), np.float64)

    def formulas(self, size: Sequence[int], count: int | None) -> list[str | float]:
        """The function as formulas of its `count` components (None: it returns a number).

        Raises NotAFormula if there are none, or if their values differ from those of the function,
        as of one that counts its calls. The function is first called at points of a box of `size`
        cells, so that errors in it are found.
        """
        places = dict(zip("xyz", _points(size), strict=False))
        found = {t: self._values(list(places.values()), t, count) for t in TIMES}
        names = (*places, "t")[: len(places) + self.timed]
        texts = formulas_of(self.call, names, 1 if count is None else count)
        for t, wanted in found.items():
            for text, values in zip(texts, wanted, strict=True):
                formula = Formula(text, (*places, "t")) if isinstance(text, str) else None
                got = formula.evaluate(**places, t=t) if formula else text
                scale = np.abs(values[np.isfinite(values)]).max(initial=0)
                if not np.allclose(got, values, SAME, SAME * scale, equal_nan=True):
                    raise NotAFormula("its values for symbols differ from those for numbers")
        return texts

    def _values(self, places: Sequence[Any], t: float, count: int | None) -> list[Floats]:
        return [self.scalar(places, t)] if count is None else self.vector(places, t, count)


def _points(size: Sequence[int]) -> list[Floats]:
    """Coordinates of cell centres all over a box, contiguous 1-D arrays."""
    steps = (np.arange(SAMPLES) + 0.5) / SAMPLES
    found = []
    for k, n in enumerate(size):
        shuffled = steps[(np.arange(SAMPLES) * (1 + 2 * k)) % SAMPLES]
        found.append(np.floor(shuffled * n) + 0.5)
    return found


class AtPoints:
    """A number at each point of a face, computed by the host.

    timed: whether it changes with time. A subclass defines `over`.
    """

    timed: Any = False

    def over(self, places: Sequence[Any]) -> Callable[[float], Floats]:
        """A function of the time that returns the numbers at points (arrays of one shape)."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PointValue(AtPoints):
    """A number at each point of a face, from a function that is no formula.

    `component` is the component of the function that has `count` of them; None: it has only one.
    The number is multiplied by the rise in the first `ramp` steps (ramp.py).
    """

    function: GivenFunction
    component: int | None = None
    count: int = 1
    ramp: int = 0

    @property
    def timed(self) -> bool:
        """Whether it changes with time."""
        return self.function.timed or self.ramp > 0

    def over(self, places: Sequence[Any]) -> Callable[[float], Floats]:
        """A function of the time that calls `at`."""
        return partial(self.at, places)

    def at(self, places: Sequence[Any], t: float) -> Floats:
        """The number at points (arrays of one shape) at time t; raises CaseError."""
        places = [np.ascontiguousarray(each, np.float64) for each in places]
        if self.component is None:
            found = self.function.scalar(places, t)
        else:
            found = self.function.vector(places, t, self.count)[self.component]
        if not np.isfinite(found).all():
            first = np.unravel_index(np.argmin(np.isfinite(found)), found.shape)
            at = ", ".join(f"{a}={p[first]:g}" for a, p in zip("xyz", places, strict=False))
            raise CaseError(
                f"the function '{self.function.name}' returns {found[first]} at {at}, t = {t:g}; "
                "allowed: finite numbers; change the function",
                self.function.where,
                self.function.path,
            )
        return found * rise(t, self.ramp)


def is_reference(text: object) -> bool:
    """Whether a text stands for an array or a function."""
    return isinstance(text, str) and text.startswith(("<array ", "<function ")) and text[-1] == ">"


def unknown(text: str) -> str:
    """The sentence for a reference to an object that does not exist here."""
    kind = "an array" if text.startswith("<array ") else "a function"
    fix = "give the name of a file with its values" if kind == "an array" else "write a formula"
    return f"stands for {kind} of the Python program that wrote this case; {fix}"


@dataclass(frozen=True, eq=False)
class Given:
    """An array or a GivenFunction with `count` components, and the number of one of them.

    `component` is None if it has only one, which has no axis in the array.
    """

    object: Any
    component: int | None = None
    count: int = 1

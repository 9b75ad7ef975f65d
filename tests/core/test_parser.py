import math
import subprocess
import sys

import numpy as np
import pytest

from mpilbm.core.formulas.parser import FUNCTIONS, NAMES, Formula, FormulaError

X, Y = np.array([[0.5, 1.5, 2.5]]), 2.5
RIGHT = {
    "1": 1,
    "-x": -X,
    "+x - -2": X + 2,
    "x + y*x/4": X + Y * X / 4,
    "x**2 - y**-2": X**2 - Y**-2,
    "x ** 2.0": X**2,
    "2*pi": 2 * math.pi,
    "sin(pi*x)*cos(x) + tan(x)": np.sin(np.pi * X) * np.cos(X) + np.tan(X),
    "exp(-x) + log(x) + sqrt(x) + tanh(x)": np.exp(-X) + np.log(X) + np.sqrt(X) + np.tanh(X),
    "abs(x - 2) + min(x, 1, y) + max(x, 2)": abs(X - 2) + np.minimum(X, 1) + np.maximum(X, 2),
    "where(1 < x <= 1.5, x, y)": np.where((X > 1) & (X <= 1.5), X, Y),
    "where(x == 0.5, 1, where(x != 1.5, 2, 3))": [[1, 3, 2]],
    "where(x >= y, 1, 0) + where(x > y, 10, 0)": [[0, 0, 1]],
}


@pytest.mark.parametrize("text", RIGHT)
def test_value(text):
    value = Formula(text).evaluate(x=X, y=Y)
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, RIGHT[text], rtol=1e-15)


@pytest.mark.parametrize("text", RIGHT)
def test_sympy_says_the_same(text):
    formula = Formula(text)
    symbols = {symbol.name: symbol for symbol in formula.symbolic().free_symbols}
    assert set(symbols) <= formula.names
    for x in X.flat:
        here = {"x": x, "y": Y}
        value = formula.symbolic().subs({symbols[name]: here[name] for name in symbols})
        assert float(value) == pytest.approx(float(formula.evaluate(**here)), rel=1e-12)


def test_decimal_numbers_are_exact_in_sympy():
    assert Formula("0.1 + 0.2 - 0.3").symbolic() == 0


def test_names_are_the_free_ones():
    assert Formula("2*pi*x/nx + t").names == {"x", "nx", "t"}


def test_division_by_zero_in_a_cell_is_infinite_without_a_warning(recwarn):
    assert np.isinf(Formula("1/(x - 1.5)").evaluate(x=X)).tolist() == [[False, True, False]]
    assert not recwarn


WRONG = {
    "q": "unknown name 'q'; allowed: x, y, z, nx, ny, nz, t, pi",
    "nxx": "did you mean 'nx'?",
    "sine(x)": "unknown function 'sine'; allowed: where, sin.*did you mean 'sin'?",
    "__import__('os').system('true')": "unknown function",
    "x.real": "'x.real' is not allowed in a formula; allowed: numbers, x",
    "().__class__": "not allowed",
    "x[0]": "not allowed",
    "[x for x in (1, 2)]": "not allowed",
    "lambda: 1": "not allowed",
    "x if y else z": "not allowed",
    "x and y": "not allowed",
    "not x": "not allowed",
    "~x": "not allowed",
    "x % 2": "not allowed",
    "x // 2": "not allowed",
    "where(x is y, 1, 2)": "not allowed",
    "f'{x}'": "not allowed",
    "'a'": "'a' is not a number",
    "True": "True is not a number",
    "1j": "1j is not a number",
    "...": "is not a number",
    "1e400": "above 1e300",
    "9" * 400: "above 1e300",
    "9**9**9": "exponent '9 \\*\\* 9': allowed: integers from -16 to 16",
    "x**17": "exponent '17'",
    "x**-17": "exponent",
    "x**0.5": "use sqrt",
    "2**x": "exponent 'x'",
    "0*((9**16)**16)**16": "too large",
    "1/0": "divides by zero",
    "x/(3 - 3)": "divides by zero",
    "x + log(0)": "-inf",
    "sqrt(-1)": "nan",
    "x < 1": "is a comparison; write where",
    "(x < 1)*2": "comparison, but a number is required",
    "where(x, 1, 2)": "takes a comparison first",
    "where(x < 1, 2)": "3 arguments.*found 2",
    "min(x)": "2 or more, found 1",
    "sin(x, y)": "1 argument, found 2",
    "sin(x=1)": "1 argument",
    "min(*x)": "2 or more",
    "": "is not a formula",
    "sin(x": "was never closed",
    "x; y": "is not a formula",
    "x := 1": "is not a formula",
    "x\0": "null",
    "(" * 500: "is not a formula|nested too deep",
    "-" * 499 + "x": "nested",
    "x**(" + "~" * 480 + "x)": "nested",
    "~" * 499 + "x": "nested",
    "+".join("x" * 60): "nested deeper than 50",
    "x" + " " * 500: "has 501 characters; allowed: at most 500",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: ascii(text[:30]))
def test_refused(text):
    with pytest.raises(FormulaError, match=WRONG[text]):
        Formula(text)


def test_only_the_names_of_the_place_are_known():
    with pytest.raises(FormulaError, match="unknown name 'z'; allowed: x, y,"):
        Formula("z", tuple(name for name in NAMES if name != "z"))


def test_every_function_takes_its_arguments():
    for name in FUNCTIONS:
        arguments = {"where": "x < 1, x, 1", "min": "x, 1", "max": "x, 1"}.get(name, "x")
        assert Formula(f"{name}({arguments})").evaluate(x=X).shape == X.shape


def test_reading_and_evaluating_imports_no_sympy():
    code = (
        "import sys; from mpilbm.core.formulas.parser import Formula; "
        "Formula('sin(x)').evaluate(x=1); sys.exit('sympy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)

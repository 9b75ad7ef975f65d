import numpy as np
import pytest
from support.case_tables import BASE, PLANE, tables

import mpilbm.case.initial_fields
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError

pytestmark = pytest.mark.usefixtures("stand_ins")


def formulas(text=BASE, **initial):
    return parse_case(tables(text, initial=initial)).fluids[0].initial


def test_initial_fields():
    initial = formulas(rho="1 + 0.01*x", u=["0.001*y", "0.001*z/nz", 0.25])
    rho, u = initial.evaluate((13, 4, 5), 3, 6)
    assert (rho.shape, u.shape, rho.dtype, u.dtype) == ((3, 4, 5), (3, 4, 5, 3), float, float)
    assert rho[2, 1, 4] == pytest.approx(1.045)
    assert u[2, 1, 4] == pytest.approx([0.0015, 0.0055 / 13, 0.25])


def test_initial_fields_in_two_dimensions():
    rho, u = formulas(PLANE, rho="1 + 0.01*y", u=["0.001*x/nx", "ny/1000"]).evaluate(
        (13, 1, 5), 3, 6
    )
    assert (rho.shape, u.shape) == ((3, 1, 5), (3, 1, 5, 2))
    assert rho[2, 0, 4] == pytest.approx(1.055)
    assert u[2, 0, 4] == pytest.approx([0.0009, 0.013])


@pytest.mark.parametrize("cells", [2**14, 60])
def test_initial_fields_do_not_depend_on_the_cut(cells, monkeypatch):
    """Nor do the values on the blocks, but for what rounding differs between them."""
    monkeypatch.setattr(mpilbm.case.initial_fields, "BLOCK_CELLS", cells)
    initial = formulas(rho="1 + 0.1*sin(x)*cos(y + z)", u=["0.1*exp(-x/(y*z))", "0.1*tanh(x)", 0])
    whole = initial.evaluate((13, 4, 5), 0, 13)
    parts = [initial.evaluate((13, 4, 5), begin, end) for begin, end in ((0, 1), (1, 6), (6, 13))]
    for index in range(2):
        np.testing.assert_array_equal(whole[index], np.concatenate([part[index] for part in parts]))
    strains = [initial.strain((13, 4, 5), *cut) for cut in ((0, 1), (1, 6), (6, 13))]
    np.testing.assert_array_equal(initial.strain((13, 4, 5), 0, 13), np.concatenate(strains))


@pytest.mark.parametrize(
    ("initial", "sentence"),
    [
        ({"rho": "1/(x - 2.5)"}, "initial.rho: inf in cell x=2, y=0, z=6 .* is not finite"),
        ({"u": ["0.1/(z - 7.5)", 0, 0]}, "initial.u.0: inf in cell x=0, y=0, z=7 .* is not finite"),
        ({"u": [0, "sqrt(2 - y)", 0]}, "initial.u.1: nan in cell x=0, y=2, z=6 .* is not finite"),
        ({"rho": "1 - y"}, "initial.rho: -0.5 in cell x=0, y=1, z=6 .* allowed: from 1e-30"),
        ({"u": ["x", 0, 0]}, "initial.u: 1.5 in cell x=1, y=0, z=6 .* allowed: below 0.57"),
    ],
)
def test_initial_field_that_goes_wrong(initial, sentence):
    with pytest.raises(CaseError, match=f"case.toml: {sentence}"):
        formulas(**initial).evaluate((13, 4, 5), 6, 9)

"""Values of scalars from files, arrays and functions, and with units."""

import numpy as np
import pytest
from support.conduction import plate
from support.scalars import carried, flow
from support.slabs import Cluster

from mpilbm.case.case import load_case, parse_case
from mpilbm.errors import CaseError

pytestmark = pytest.mark.filterwarnings("error")


def tables(value, key="value", initial=0.3) -> dict:
    """A scalar between two walls along y, of 5 by 8 cells."""
    name = "value" if key == "value" else "flux"
    cold = {"name": "value", "where": ["y-"], "value": 0.2}
    ends = [cold, {"name": name, "where": ["y+"], key: value}]
    return flow(
        scalars=[carried(boundary=ends, initial={"value": initial})],
        domain={"size": [5, 8], "periodic": [True, False]},
        boundary=[{"name": "bounce_back", "where": ["y-", "y+"]}],
    )


def result(given: dict, slabs=1) -> np.ndarray:
    return Cluster(given, slabs).start().run(12).fields("T")["T"]


@pytest.mark.parametrize("key", ["value", "flux"])
def test_arrays_functions_and_formulas_agree(key):
    scale = 1.0 if key == "value" else 1e-3
    x = np.arange(5) + 0.5
    whole = result(tables(scale * x, key), 2)
    formula = result(tables(f"{scale}*x", key))
    np.testing.assert_allclose(whole, formula, rtol=1e-12)
    np.testing.assert_allclose(result(tables(lambda x, y: scale * x, key)), formula, rtol=1e-12)
    assert formula.std(axis=2).max() > 1e-4


def test_files_of_values_and_initial_values(tmp_path):
    x, y = np.arange(5) + 0.5, np.arange(8)[:, None] + 0.5
    np.save(tmp_path / "end.npy", x)
    np.save(tmp_path / "start.npy", 0.01 * x * y)
    (tmp_path / "series.csv").write_text("0, 0.5\n20, 1.5\n")

    def found(value, initial) -> np.ndarray:
        given = tables(value, initial=initial)
        for scalar in given["scalar"]:
            for each in (scalar["initial"], *scalar["boundary"]):
                if str(each["value"]).endswith(("npy", "csv")):
                    each["value"] = str(tmp_path / each["value"])
        return result(given)

    np.testing.assert_allclose(found("end.npy", "start.npy"), found("x", "0.01*x*y"), rtol=1e-12)
    np.testing.assert_allclose(found("series.csv", 0.3), found("0.5 + 0.05*t", 0.3), rtol=1e-12)
    np.testing.assert_allclose(found("x", 0.01 * x * y), found("x", "0.01*x*y"), rtol=1e-12)


@pytest.mark.parametrize(
    ("value", "found"),
    [(np.ones(4), "shape"), (np.full(5, np.nan), "finite"), ("none.npy", "none.npy")],
)
def test_wrong_values_are_refused(value, found):
    with pytest.raises(CaseError, match=found):
        parse_case(tables(value), "test.toml")


def test_materials_of_bodies_have_units():
    body = plate(0, 2, 0.1, 1.0)
    body["scalar"]["T"]["conjugate"]["diffusivity"] = "1e-4 m^2/s"
    units = {"cell": 1e-3, "step": 1e-3, "density": 1000}
    case = load_case(flow(body=[body], units=units))
    assert case.scalars[0].bodies[0].conjugate.diffusivity == pytest.approx(0.1)


def test_values_that_change_with_time_are_known_to_do_so():
    """Steps with such values are not recorded on GPUs."""
    timed = Cluster(tables("0.5 + 0.05*t")).solvers[0].context.timed
    assert timed
    assert not Cluster(tables("0.5 + 0.05*x")).solvers[0].context.timed


def test_wrong_formulas_on_bodies_are_refused():
    body = plate(0, 2, 0.1, 1.0) | {"scalar": {"T": {"flux": "1 + foo"}}, "label": "plate"}
    with pytest.raises(CaseError, match=r"body\.plate\.scalar\.T\.flux: .*foo"):
        parse_case(flow(body=[body]), "test.toml")

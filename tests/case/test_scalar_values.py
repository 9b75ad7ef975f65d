"""Values of scalars from files, arrays and functions, and with units."""

import numpy as np
import pytest
from support.conduction import plate
from support.scalars import carried, flow
from support.slabs import Cluster

from mpilbm.case.case import load_case, parse_case
from mpilbm.core.errors import CaseError

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


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"vlaue": 1.0}, r"T: found \{vlaue = 1.0\}; allowed: a table with one of the keys value"),
        ({"value": 1.0, "flux": 0.1}, "T: found value and flux; allowed: a table with one of"),
        ("adiabatic", 'T: found "adiabatic"; allowed: .* or {} for an adiabatic body'),
        ({"value": 1.0, "where": ["y-"]}, "T: where names faces of the box, .* remove where"),
        ({"value": 1.0, "interpolated": True}, "T.interpolated: unknown key"),
        ({"h": -0.1}, "T.*h: found -0.1; allowed: 0 or more"),
        ({"conjugate": {"difusivity": 1.0}}, "difusivity: unknown key; .*mean 'diffusivity'"),
    ],
)
def test_conditions_that_bodies_cannot_have(condition, message):
    body = plate(0, 2, 0.1, 1.0) | {"label": "plate", "scalar": {"T": condition}}
    with pytest.raises(CaseError, match=rf"body\.plate\.scalar\..*{message}"):
        parse_case(flow(body=[body]), "test.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "T 1"}, "label: found .* allowed: letters, digits and _, a letter first"),
        ({"lattice": "D2Q6"}, "scalar.T.lattice.name: 'D2Q6' is not one of the scalar lattices"),
        ({"source": "2*foo"}, "scalar.T.source: unknown name 'foo'"),
    ],
)
def test_messages_name_the_scalar_by_its_label(change, message):
    with pytest.raises(CaseError, match=message):
        parse_case(flow(scalars=[carried() | change]), "test.toml")


def test_a_viscosity_that_depends_on_a_file_gives_no_diffusivity():
    given = tables(0.5, initial=np.ones((8, 5))) | {"fluid": {"viscosity": "0.1*T"}}
    given["scalar"][0] |= {"prandtl": 0.7}
    del given["scalar"][0]["diffusivity"]
    with pytest.raises(CaseError, match=r"scalar\.T\.prandtl: needs the viscosity .*"):
        parse_case(given, "test.toml")


def test_invalid_values_at_the_start_name_their_key():
    with pytest.raises(CaseError, match=r"scalar\.T\.initial\.value: nan in cell x=0"):
        result(tables(0.5, initial="log(x - 20)"))

"""A cavity of air in SI: its case in lattice units, its fluxes in W/m^2, and mistakes."""

import tomllib
from pathlib import Path

import pytest
from support.runs import run_case

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.view.results.tables import read_table

MANUAL = Path(__file__).parents[2] / "mpilbm/view/manual/units.md"
CAPACITY, CELL, STEP, D = 1210.0, 5e-4, 2.5e-4, 2.1e-5


def air(**scalar) -> dict:
    """The example of the manual, with other keys of its scalar."""
    (text,) = (part for part in MANUAL.read_text().split("```toml\n") if "Air between" in part)
    tables = tomllib.loads(text.split("```")[0])
    tables["scalar"][0] |= scalar
    return tables


def faces(**keys) -> dict:
    return {"boundary": [{"where": ["x-", "x+"], **keys}]}


def test_the_case_is_in_lattice_units():
    case = parse_case(air(), "air.toml")
    (scalar,) = case.scalars
    assert scalar.diffusivity == pytest.approx(D * STEP / CELL**2)
    assert [b.value for b in scalar.boundaries if b.name == "value"] == [5, -5]
    assert case.buoyancy.gravity[1] == pytest.approx(-9.81 * STEP**2 / CELL)
    assert case.buoyancy.expansions["T"].beta == pytest.approx(3.41e-3)


def test_quantities_of_heat():
    velocity = CELL / STEP

    def found(keys, name):
        tables = air(**faces(**keys), source="1e5 W/m^3")
        tables["output"] = []
        (scalar,) = parse_case(tables, "air.toml").scalars
        assert scalar.source == pytest.approx(1e5 / CAPACITY * STEP)
        return getattr(scalar.boundaries[0], name)

    flux = {"name": "flux", "flux": "100 W/m^2"}
    assert found(flux, "flux") == pytest.approx(100 / CAPACITY / velocity)
    assert found(flux | {"flux": "0.2 K m/s"}, "flux") == pytest.approx(0.2 / velocity)
    robin = {"name": "robin", "h": "10 W/(m^2 K)", "ambient": "290 K"}
    assert found(robin, "h") == pytest.approx(10 / CAPACITY / velocity)
    assert found(robin, "ambient") == 290


def test_heat_from_a_body():
    tables = air()
    shape = {"name": "cylinder", "centre": ["6 mm", "6 mm"], "radius": "2 mm"}
    on = {"boundary": {"name": "bounce_back"}, "scalar": {"T": {"flux": "100 W/m^2"}}}
    tables["body"] = [{"shape": shape, **on}]
    (body,) = parse_case(tables, "air.toml").scalars[0].bodies
    assert body.flux == pytest.approx(100 / CAPACITY * STEP / CELL)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"heat_capacity": None}, "the scalar has no heat_capacity; add heat_capacity"),
        ({"heat_capacity": -1}, "heat_capacity"),
        ({"heat_capacity": "1210 J/(kg K)"}, "allowed: the unit of"),
        (faces(name="flux", flux="100 Pa"), "of unit kg/.*; allowed: the unit of"),
        (faces(name="robin", h="10 W/m^2"), "allowed: the unit of"),
    ],
)
def test_mistakes(keys, message):
    tables = air(**{"boundary": [{"name": "flux", "where": ["x-"], "flux": "1 W/m^2"}]} | keys)
    tables["scalar"] = [{k: v for k, v in tables["scalar"][0].items() if v is not None}]
    tables["output"] = []
    with pytest.raises(CaseError, match=message):
        parse_case(tables, "air.toml")


def test_fluxes_of_a_run_are_in_watts(tmp_path):
    run_case(parse_case(air() | {"run": {"steps": "4 s"}}, "air.toml"), tmp_path)
    table = read_table(tmp_path / "nusselt.csv")
    nu = table["nusselt_x-"][-1]
    assert 1.2 < nu < 1.4
    for name in ("nusselt_x+", "nusselt_volume"):
        assert table[name][-1] == pytest.approx(nu, rel=1e-3)
    assert table["flux_x- (W/m^2)"][-1] == pytest.approx(nu * CAPACITY * D * 10 / 0.012, rel=1e-6)
    monitor = read_table(tmp_path / "monitor.csv")
    dissipation = D * (10 / 0.012) ** 2 * table["nusselt_dissipation"][-1]
    assert monitor["dissipation_T_per_s"][-1] == pytest.approx(dissipation, rel=1e-6)

"""Fluxes of scalars and Nusselt numbers: exact conservation, agreement, restarts, mistakes."""

import numpy as np
import pytest
from support.runs import run_case
from support.scalars import carried, flow, scalar_state, setting
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.solver.scalar_transport import over_owners
from mpilbm.view.results.tables import read_table

DOUBLE = {"compute": "float64", "storage": "float64"}
NUSSELT = {"name": "nusselt", "every": 3, "axis": "y", "difference": 1.0}


def cavity(n=24, steps=2400, **output) -> dict:
    """A cavity with a hot and a cold side at Ra = 2000."""
    sides = [
        {"name": "value", "where": [f"x{side}"], "value": v} for side, v in (("-", 1), ("+", 0))
    ]
    nu, D = 0.1, 0.1 / 0.71
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [n, n]},
        "fluid": {"viscosity": nu},
        "collision": {"name": "trt"},
        "precision": DOUBLE,
        "boundary": [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}],
        "scalar": [{"label": "T", "prandtl": 0.71, "initial": {"value": "1 - x/nx"},
                    "boundary": sides}],
        "buoyancy": {"gravity": [0, -2000 * nu * D / n**3], "T": {"beta": 1, "reference": 0.5}},
        "run": {"steps": steps},
        "backend": {"name": "cpu"},
        "output": [{"name": "nusselt", "every": 600} | output],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lattice", "layout", "of_scalar"),
    [("D2Q9", "aa", "D2Q9"), ("D2Q9", "ab", "D2Q5"), ("D3Q19", "esopull", "D3Q7")],
)
def test_the_fluxes_are_what_the_scalar_gains(lattice, layout, of_scalar):
    """Also at an interpolated body; the same bits on any number of slabs."""
    D, totals = int(lattice[1]), {}
    tables = flow(lattice, layout, **setting("body", D), output=[NUSSELT])
    tables["scalar"] = [each | {"lattice": of_scalar} for each in tables["scalar"]]
    for slabs in (1, 2):
        cluster = Cluster(tables, slabs).start().run(2)
        links = [solver.transport.fluxes[0] for solver in cluster.solvers]
        before = scalar_state(cluster).sum()
        started = cluster.each(lambda s: s.transport.fluxes[0].start())
        parts = [(each.groups, found()) for each, found in zip(links, started, strict=True)]
        totals[slabs] = over_owners(links[0].owners, parts)
        gained = scalar_state(cluster.run(1)).sum() - before
        assert totals[slabs].sum() == pytest.approx(gained, abs=1e-12 * before)
    assert np.array_equal(totals[1], totals[2])
    assert (np.abs(totals[1]) > 1e-3).all()  # two faces and the body


def test_all_nusselt_numbers_of_a_cavity_agree(tmp_path):
    run_case(parse_case(cavity(), "cavity.toml"), tmp_path)
    table = read_table(tmp_path / "nusselt.csv")
    names = ("x-", "x+", "volume", "dissipation")
    found = [table[f"nusselt_{name}"][-1] for name in names]
    assert found[0] > 1.1
    assert found == pytest.approx([found[0]] * 4, rel=1e-3)
    assert table["flux_y-"][-1] == table["flux_y+"][-1] == 0
    assert table["flux_x-"][-1] * 24 * 0.71 / 0.1 == pytest.approx(found[0])


def plate(**more) -> dict:
    """Conduction over 6 cells from a plate of 5 cells, whose surface is at y = 3, to a face."""
    shape = {"name": "box", "lower": [0, 0], "upper": [5, 3]}
    body = {"label": "plate", "shape": shape, "boundary": {"name": "bounce_back"}}
    scalar = {
        "label": "T",
        "diffusivity": 0.2,
        "initial": {"value": 2.0},
        "boundary": [{"name": "value", "where": ["y+"], "value": 2.0}],
    }
    number = {"label": "plate", "length": 12, "perimeter": 5, "difference": 1.5} | more
    output = {"name": "nusselt", "every": 500, "axis": "y", "difference": 1, "body": [number]}
    tables = {key: value for key, value in cavity().items() if key != "buoyancy"}
    return tables | {
        "domain": {"size": [5, 9], "periodic": [True, False]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "body": [body | {"scalar": {"T": {"value": 3.5}}}],
        "scalar": [scalar],
        "run": {"steps": 1000},
        "output": [output],
    }


def test_the_number_of_a_body_is_that_of_conduction_from_a_plate(tmp_path):
    run_case(parse_case(plate(), "plate.toml"), tmp_path)
    table = read_table(tmp_path / "nusselt.csv")
    assert table["rate_plate"][-1] == pytest.approx(0.2 * 1.5 / 6 * 5, rel=1e-9)
    assert table["nusselt_plate"][-1] == pytest.approx(12 / 6, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "ball"}, "body: found 'ball'; allowed: plate"),
        ({"area": 5}, "'plate': in 2D give perimeter, and not area"),
        ({"difference": 0}, "difference is 0"),
    ],
)
def test_mistakes_in_the_number_of_a_body_are_named(change, message):
    with pytest.raises(CaseError) as error:
        parse_case(plate(**change), "plate.toml")
    assert message in str(error.value)


@pytest.mark.parametrize("label", ["volume", "dissipation", "y-"])
def test_a_body_with_the_name_of_another_column_is_refused(label):
    """nusselt_volume would be twice in the first line of the file, which nothing could read."""
    tables = plate(label=label)
    tables["body"][0]["label"] = label
    with pytest.raises(CaseError, match=f"body: found '{label}', and nusselt_{label} is that of"):
        parse_case(tables, "plate.toml")


def test_a_restart_does_not_show(tmp_path):
    outputs = {"every": 2}
    for name, stops in {"whole": [6], "parts": [4, 6]}.items():
        for steps in stops:
            tables = cavity(8, steps, **outputs)
            tables["output"].append({"name": "checkpoint", "every": 4})
            more = {"restart": "auto"} if steps == 6 and name == "parts" else {}
            run_case(parse_case(tables, "cavity.toml"), tmp_path / name, **more)
    texts = [(tmp_path / name / "nusselt.csv").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    assert [row.split(",")[0] for row in texts[0].splitlines()[1:]] == ["2", "4", "6"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"scalar": "S"}, "scalar: found 'S'; allowed: T"),
        ({"axis": "z"}, "axis: found 'z' in 2D; allowed: x, y"),
        ({"axis": "y"}, "difference: missing, and the faces y- and y"),
        ({"difference": 0}, "difference: is 0"),
        ({"length": -3}, "length"),
        ({"difference": float("nan")}, "difference"),
    ],
)
def test_mistakes(keys, message):
    with pytest.raises(CaseError, match=message.replace("+", r"\+")):
        parse_case(cavity(**keys), "cavity.toml")


@pytest.mark.parametrize(
    ("faces", "found"),
    [
        ({"y-": 1}, 'no axis has two faces with a constant `value` of T; allowed: x, y; add '
                    'axis = "y", the direction of the flux'),
        ({"x+": "y/ny", "y-": 1, "y+": "x/nx"}, 'add axis = "y", the'),
        ({"x-": 1, "x+": 0, "y-": 1, "y+": 0}, 'several axes have two faces with a constant `value`'
                                               ' of T; allowed: x, y; add axis = "x" or "y", the'),
        ({}, 'add axis = "x" or "y", the'),
    ],
)  # fmt: skip
def test_the_proposed_axis_is_that_of_the_faces_with_values(faces, found):
    tables = cavity()
    tables["scalar"][0]["boundary"] = [
        {"name": "value", "where": [face], "value": value} for face, value in faces.items()
    ]
    with pytest.raises(CaseError) as error:
        parse_case(tables, "cavity.toml")
    assert found in str(error.value)


def test_a_case_without_scalars_and_two_files_of_one_name():
    tables = cavity()
    del tables["scalar"], tables["buoyancy"]
    with pytest.raises(CaseError, match="scalar: the case has none"):
        parse_case(tables, "cavity.toml")
    tables = cavity()
    tables["output"] *= 2
    with pytest.raises(CaseError, match="without a label"):
        parse_case(tables, "cavity.toml")
    tables = cavity()
    tables["scalar"].append(carried("S"))
    with pytest.raises(CaseError, match="scalar: missing; allowed: one of T, S"):
        parse_case(tables, "cavity.toml")

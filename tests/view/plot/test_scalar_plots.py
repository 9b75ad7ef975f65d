"""Pictures of scalars: the field, profiles, and Nusselt numbers."""

import pytest
from support.runs import run_case
from support.scalars import flow, setting

from mpilbm.case.case import parse_case
from mpilbm.outputs.drawing import colours_of
from mpilbm.view.plot.pictures import draw, pyplot
from mpilbm.view.plot.planes import cuts_of
from mpilbm.view.plot.slices import field_figure
from mpilbm.view.plot.time_series import nusselt_figure
from mpilbm.view.results import open_run
from mpilbm.view.results.snapshot import view

pytest.importorskip("matplotlib")


def test_a_run_with_a_scalar_has_pictures_of_it(tmp_path):
    outputs = [
        {"name": "nusselt", "every": 2, "axis": "y", "difference": 1.0},
        {"name": "snapshot", "every": 8, "fields": ["u", "T"]},
        {"name": "statistics", "every": 2, "average": ["x"]},
    ]
    tables = flow("D2Q9", **setting("walls", 2), output=outputs, run={"steps": 8})
    run_case(parse_case(tables, "flow.toml"), tmp_path)
    files, _ = draw(tmp_path)
    assert {"T", "scalars_y", "nusselt"} <= {path.stem for path in files}
    with view(tmp_path / "snapshot_000000008.vtkhdf") as snapshot:
        plt = pyplot()
        figure = field_figure(plt, snapshot, cuts_of(snapshot, None), "T")
    assert "T" in [axis.get_ylabel() for axis in figure.axes]  # without a unit
    plt.close("all")


def heated(sides, **output):
    """A closed box of 8 x 6 cells with these values of T at its sides."""
    values = [{"name": "value", "where": [face], "value": value} for face, value in sides.items()]
    scalar = {
        "label": "T",
        "diffusivity": 0.1,
        "boundary": values,
        "initial": {"value": "1.001 - x/nx"},
    }
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [8, 6]},
        "fluid": {"viscosity": 0.1},
        "boundary": [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}],
        "scalar": [scalar],
        "run": {"steps": 8},
        "backend": {"name": "cpu"},
        "output": [
            {"name": "nusselt", "every": 2, **output},
            {"name": "snapshot", "every": 8, "fields": ["u", "T"]},
        ],
    }


@pytest.mark.parametrize(
    ("sides", "output", "shown"),
    [
        ({"x-": 1, "x+": 0}, {}, ["x-", "x+", "volume", "dissipation"]),
        ({"x-": 1}, {"axis": "x", "difference": 1}, ["x-", "volume", "dissipation"]),
        ({"x-": 1}, {"axis": "y", "difference": 1, "label": "up"}, ["volume", "dissipation"]),
    ],
)
def test_faces_without_a_given_value_have_no_nusselt_number(tmp_path, sides, output, shown):
    run_case(parse_case(heated(sides, **output), "box.toml"), tmp_path)
    plt, run = pyplot(), open_run(tmp_path)
    (name,) = [each for each in run.tables if each.startswith("nusselt")]
    figure, lines = nusselt_figure(plt, run, name)
    assert [line.split()[1].removeprefix("nusselt_") for line in lines] == shown
    labels = [line.get_label().partition(",")[0] for line in figure.axes[0].lines]
    assert labels == shown
    assert "nusselt_y+" in run.table(name) or output.get("axis", "x") == "x"  # the file has all
    plt.close(figure)


def test_a_scalar_has_a_sequential_map_over_its_range(tmp_path):
    run_case(parse_case(heated({"x-": 1, "x+": -0.1}), "box.toml"), tmp_path)
    plt = pyplot()
    with view(tmp_path / "snapshot_000000008.vtkhdf") as snapshot:
        values = snapshot.field("T")[:]
        figure = field_figure(plt, snapshot, cuts_of(snapshot), "T")
    image = figure.axes[0].images[0]
    assert values.min() < 0 < values.max()
    assert image.get_cmap().name == "viridis"
    assert image.get_clim() == pytest.approx((values.min(), values.max()))
    plt.close(figure)


def test_signed_fields_have_a_diverging_map_if_both_signs_occur():
    assert colours_of(-0.5, 2.0, signed=True) == ("RdBu_r", -2.0, 2.0)
    assert colours_of(-0.5, 2.0, signed=False) == ("viridis", -0.5, 2.0)
    assert colours_of(-1e-9, 2.0, signed=True) == ("viridis", -1e-9, 2.0)  # round-off
    assert colours_of(0.0, 2.0, signed=True) == ("viridis", 0.0, 2.0)

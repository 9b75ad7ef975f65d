"""Pictures of scalars: the field, profiles, and Nusselt numbers."""

import pytest
from support.runs import run_case
from support.scalars import flow, setting

from mpilbm.case.case import parse_case
from mpilbm.plot.pictures import draw
from mpilbm.plot.slices import field_figure
from mpilbm.results.snapshot import view

pytest.importorskip("matplotlib")


def test_a_run_with_a_scalar_has_pictures_of_it(tmp_path):
    from matplotlib import pyplot

    from mpilbm.plot.cuts import cuts_of

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
        figure = field_figure(pyplot, snapshot, cuts_of(snapshot, None), "T")
    assert "T" in [axis.get_ylabel() for axis in figure.axes]  # without a unit
    pyplot.close("all")

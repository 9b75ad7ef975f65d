"""Stresses at wall models: the momentum that the fluid loses, units, restarts, mistakes."""

import json

import numpy as np
import pytest
from support.runs import run_case
from support.wall_models import AREA, PUSH, SIZE, channel

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.view.results.tables import read_table


def rows(folder, tables, **more):
    run_case(parse_case(tables, "channel.toml"), folder, **more)
    return read_table(folder / "wall_stress.csv")


def test_stresses_are_what_the_fluid_loses(tmp_path):
    """Of the following step, at walls that move with time and place; momentum is exact."""
    found = rows(tmp_path, channel())
    monitor = read_table(tmp_path / "monitor.csv")
    for a, axis in ((0, "x"), (2, "z")):
        lost = PUSH[a] * np.prod(SIZE) - np.diff(monitor[f"momentum_{axis}"])
        stress = found[f"stress_{axis}_y-"] + found[f"stress_{axis}_y+"]
        np.testing.assert_allclose(AREA * stress[:-1], lost, rtol=1e-9)
    u_tau, y_plus = found["u_tau_y-"], found["y_plus_y-"]
    np.testing.assert_allclose(y_plus, u_tau / (2 * 1e-3), rtol=1e-12)
    assert (found["y_plus_max_y-"] > y_plus).all()
    size = np.hypot(found["stress_x_y-"], found["stress_z_y-"])
    np.testing.assert_allclose(np.sqrt(size), u_tau, rtol=0.02)  # densities differ from 1 by 1 %


def test_next_to_a_body_the_sample_is_the_last_fluid_cell_before_it(tmp_path):
    """Bodies at the second and at the third cells; walls, body and force change the momentum."""
    low = {"name": "box", "lower": [1, 1, 1], "upper": [3, 2, 3]}
    high = {"name": "box", "lower": [1, 2, 4], "upper": [4, 3, 6]}
    stones = [
        {"label": label, "shape": shape, "boundary": {"name": "bounce_back"}}
        for label, shape in (("low", low), ("high", high))
    ]
    tables = channel(body=stones)
    tables["output"].append({"name": "body_forces", "every": 1})
    found = rows(tmp_path, tables)
    monitor = read_table(tmp_path / "monitor.csv")
    on = sum(read_table(tmp_path / f"forces_{label}.csv")["force_x"] for label in ("low", "high"))
    for k in range(1, len(on)):  # the force in the step after each row, of which rows are means
        on[k] = 2 * on[k] - on[k - 1]
    lost = PUSH[0] * (np.prod(SIZE) - 4 - 6) - np.diff(monitor["momentum_x"])
    stress = found["stress_x_y-"] + found["stress_x_y+"]
    np.testing.assert_allclose(AREA * stress[:-1], lost - on[:-1], rtol=1e-9)


def test_columns_in_si_and_the_summary(tmp_path):
    units = {"cell": 0.001, "step": 0.002, "density": 1000.0}
    tables = channel(units=units, run={"steps": 64})
    tables["boundary"][1]["roughness"] = "0.2 mm"
    assert parse_case(tables, "channel.toml").boundaries[1].roughness == pytest.approx(0.2)
    found = rows(tmp_path, tables)
    pascal, speed = 1000 * (0.001 / 0.002) ** 2, 0.001 / 0.002
    np.testing.assert_allclose(found["stress_x_y+ (Pa)"], pascal * found["stress_x_y+"])
    np.testing.assert_allclose(found["u_tau_y- (m/s)"], speed * found["u_tau_y-"])
    summary = json.loads((tmp_path / "summary.json").read_text())["wall_stress"]
    last = found["u_tau_y+"][len(found["u_tau_y+"]) // 2 :]
    assert summary["y+"]["u_tau"]["mean"] == pytest.approx(last.mean(), rel=1e-9)
    assert summary["y-"]["y_plus"]["error"] > 0


def test_a_restart_continues_rows_and_means(tmp_path):
    """The summary is that of one run, too."""
    checkpoint = {"name": "checkpoint", "every": 5}
    whole = channel(run={"steps": 20})
    whole["output"].append(checkpoint)
    first = whole | {"run": {"steps": 10}}
    rows(tmp_path / "whole", whole)
    rows(tmp_path / "parts", first)
    rows(tmp_path / "parts", whole, restart="auto")
    texts = [(tmp_path / name / "wall_stress.csv").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    found = [
        json.loads((tmp_path / name / "summary.json").read_text())["wall_stress"]
        for name in ("whole", "parts")
    ]
    assert found[0] == found[1]


def test_mistakes_are_explained():
    tables = channel()
    tables["boundary"] = [{"name": "bounce_back", "where": ["y-", "y+"]}]
    said = r"no face has the boundary wall_model; give one, .* the output surface has the stress"
    with pytest.raises(CaseError, match=said):
        parse_case(tables, "channel.toml")


def test_a_face_without_fluid_is_refused(tmp_path):
    cover = {"name": "box", "lower": [0, 0, 0], "upper": [5, 3, 6]}
    tables = channel(body=[{"shape": cover, "boundary": {"name": "bounce_back"}}])
    with pytest.raises(CaseError, match="the face y- with 'wall_model' has no fluid cell"):
        rows(tmp_path, tables)

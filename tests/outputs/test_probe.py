"""The output probe: its values, its tables while a run continues, restarts, and wrong input."""

import csv
import os

import h5py
import numpy as np
import pytest
from support.outputs_cases import BODY, make_case
from support.runs import run_case

import mpilbm
from mpilbm.core.errors import CaseError
from mpilbm.outputs.core import tables
from mpilbm.outputs.core.tables import Series, read
from mpilbm.outputs.probe import Interpolation

POINTS = [[0.5, 3.5, 6.5], [2.2, 1.1, 3.9], [5.0, 0.0, 7.0]]


def probe(**more):
    return {"name": "probe", "every": 2, "points": POINTS, "fields": ["rho", "u"]} | more


def flow(*outputs, size=(5, 4, 7), steps=6, **more):
    initial = {"u": ["0.03*sin(2*pi*z/nz)", "0.02*cos(2*pi*x/nx)", 0.01][: len(size)]}
    if len(size) == 2:
        initial = {"u": ["0.03*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}
    return make_case(size, list(outputs), initial=initial, run={"steps": steps}, **more)


def test_the_table_has_the_values_of_the_cells(tmp_path):
    names = ["rho", "u", "vorticity", "q_criterion"]
    near = probe(interpolation="nearest", fields=names)
    run_case(flow(near, probe(label="csv", format="csv"), body=BODY), tmp_path)
    with mpilbm.Simulation(flow(body=BODY)) as sim, h5py.File(tmp_path / "probe_0.h5") as file:
        assert file["step"][:].tolist() == [2, 4, 6]
        for row in range(3):
            sim.run(2)
            for name in names:
                field = sim.field(name)
                for k, cell in enumerate([(6, 3, 0), (3, 1, 2), (0, 0, 0)]):
                    assert np.array_equal(file[name][row, k], field[cell].astype(float))
    rows = list(csv.reader((tmp_path / "probe_csv.csv").open()))
    assert rows[0][:4] == ["step", "time (steps)", "rho_0", "rho_1"]
    assert rows[0][5:8] == ["u_x_0", "u_y_0", "u_z_0"]
    assert [row[0] for row in rows[1:]] == ["2", "4", "6"]


def test_linear_interpolation_is_exact_and_uses_fluid_cells_only():
    case = make_case((5, 4, 7), domain={"size": [5, 4, 7], "periodic": [True, False, False]})
    points = np.array([[2.2, 1.1, 3.9], [0.1, 0.2, 6.9], [1.5, 2.5, 2.5]])
    made = Interpolation.create(case, points, linear=True)
    plane, row, x = made.nodes.T + 0.5
    found = made.values(np.stack([1 + 2 * row + 3 * plane, np.cos(2 * np.pi * x / 5)], axis=1))
    assert found[0, 0] == pytest.approx(1 + 2.2 + 11.7)
    assert found[1, 0] == pytest.approx(1 + 2 * 0.5 + 3 * 6.5)  # walls: the value of the cell
    wrapped = 0.6 * np.cos(0.2 * np.pi) + 0.4 * np.cos(2 * np.pi * 4.5 / 5)
    assert found[1, 1] == pytest.approx(wrapped)
    solid = (made.nodes == [2, 2, 1]).all(axis=1)
    assert made.inside(solid).tolist() == [False, False, True]
    values = np.where(solid, 7.0, 2.0)
    assert made.of_fluid(solid).values(values).tolist() == [2.0, 2.0, 7.0]


def test_linear_interpolation_does_not_reach_through_a_pressure_jump():
    jump = {"name": "pressure_jump", "where": ["x-", "x+"], "rho_jump": 0.01}
    case = make_case((5, 4, 7), boundary=[jump])
    points = np.array([[0.0, 1.5, 2.5], [5.0, 1.5, 2.5], [2.0, 0.0, 2.5]])
    made = Interpolation.create(case, points, linear=True)
    rho = 1 - 0.002 * (made.nodes[:, 2] + 0.5)
    np.testing.assert_allclose(made.values(rho), [0.999, 0.991, 0.996], rtol=1e-14)


def test_a_restart_keeps_the_rows_up_to_its_step(tmp_path):
    outputs = probe(), probe(label="t", format="csv"), {"name": "checkpoint", "every": 4}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_case(flow(*outputs, steps=10), whole)
    run_case(flow(*outputs, steps=6), parts)
    run_case(flow(*outputs, steps=10), parts, restart=parts / "checkpoint_000000004.h5")
    one, other = (read(folder / "probe_0.h5") for folder in (whole, parts))
    assert one["step"].tolist() == [2, 4, 6, 8, 10]
    for name in one:
        assert np.array_equal(one[name], other[name])
    assert (whole / "probe_t.csv").read_text() == (parts / "probe_t.csv").read_text()


def table(path, first=0, capacity=3, fields=None):
    return Series(path, fields or {"rho": (2,)}, first, capacity, lambda file: None)


def test_a_table_is_readable_before_it_is_closed_and_grows(tmp_path):
    path = tmp_path / "a.h5"
    rows = table(path)
    for step in range(1, 6):
        rows.add(step, {"time": step, "rho": [step, -step]})
        found = read(path)
        assert found["step"].tolist() == list(range(1, step + 1))
        assert found["rho"][-1].tolist() == [step, -step]
    assert h5py.File(path, locking=False)["step"].shape == (6,)
    os.close(rows._number)  # as after kill -9
    again = table(path, first=3)
    again.add(7, {"time": 7, "rho": [0, 0]})
    again.close()
    assert h5py.File(path)["step"][:].tolist() == [1, 2, 3, 7]


@pytest.mark.parametrize("content", [b"no HDF5", None])
def test_a_table_with_other_columns_is_renamed(tmp_path, content, capsys):
    path = tmp_path / "a.h5"
    table(path, fields={"u": (4,)}).close()
    if content:
        path.write_bytes(content)
    table(path, first=3).close()
    assert (tmp_path / "a_before_000000003.h5").exists()
    assert "other columns" in capsys.readouterr().err
    assert read(path)["step"].size == 0


def test_rows_reach_the_disk_after_a_limited_time(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(tables, "sync", synced.append)
    rows = table(tmp_path / "a.h5")
    rows.add(1, {"time": 1, "rho": 0})
    assert not synced
    monkeypatch.setattr(tables, "SYNC_SECONDS", 0)
    rows.add(2, {"time": 1, "rho": 0})
    assert synced == [tmp_path / "a.h5"]
    rows.close()


def test_units_are_si(tmp_path):
    units = {"cell": 0.01, "step": 0.001, "density": 1000}
    text = ["25 mm", "1 cm", 3.5]
    run_case(flow(probe(points=[text]), units=units, fluid={"viscosity": 0.1}), tmp_path)
    with h5py.File(tmp_path / "probe_0.h5") as file:
        assert file["positions"][0].tolist() == pytest.approx([0.025, 0.01, 0.035])
        assert file["time"][:].tolist() == pytest.approx([0.002, 0.004, 0.006])
        assert file["rho"][0, 0] == pytest.approx(1000, rel=0.05)
        assert (file["u"].attrs["unit"], file["time"].attrs["unit"]) == ("m/s", "s")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"points": [[1, 2]]}, "a point of 2 coordinates; allowed: 3"),
        ({"points": [[1, 2, 7.5]]}, "point 0.*outside the box"),
        ({"points": [[-1, 2, 3]]}, "outside the box"),
        ({"points": [[float("nan"), 2, 3]]}, "points"),
        ({"points": []}, "found no point"),
        ({"points": None}, "either points or file"),
        ({"file": "a.csv"}, "either points or file"),
        ({"points": None, "file": "missing.csv"}, "'missing.csv' is missing"),
        ({"fields": ["speed"]}, "'speed' is not a field"),
        ({"points": [[1, 1, 1]] * 400, "format": "csv"}, "1600 columns"),
        ({"interpolation": "cubic"}, "interpolation"),
        ({"every": -1}, "every"),
    ],
)
def test_wrong_input_is_refused(more, message):
    output = {key: value for key, value in probe(**more).items() if value is not None}
    with pytest.raises(CaseError, match=message):
        flow(output)


def test_points_in_solids_are_reported_and_files_of_points_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("x,y,z\n1.5,0.5,2.5\n3,3,3\n")
    output = {key: value for key, value in probe().items() if key != "points"}
    with mpilbm.Simulation(
        flow(output | {"file": "points.csv"}, body=BODY), directory=tmp_path / "out"
    ) as sim:
        sim.run(2)
    assert any("1 of 2 points in solids, first [1.5, 0.5, 2.5]" in m for m in sim.messages)
    assert read(tmp_path / "out" / "probe_0.h5")["u"].shape == (1, 2, 3)

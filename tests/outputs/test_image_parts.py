"""Lines, planes, boxes, and snapshots of parts of the box."""

import json

import numpy as np
import pytest
from support import image_cases

from mpilbm import CaseError, open_run
from mpilbm.case.case import parse_case
from mpilbm.storage import planes


@pytest.mark.parametrize("layout", ["aa", "indirect", "moments"])
def test_files_have_the_fields_of_their_part(tmp_path, layout):
    fields = image_cases.run(tmp_path, given=image_cases.tables(layout=layout))
    image_cases.check(tmp_path, fields)


def test_the_ways_of_writing_give_the_same_bits(tmp_path, monkeypatch):
    image_cases.run(tmp_path / "own")
    monkeypatch.setattr(planes, "best_writer", lambda *_: "root")
    image_cases.run(tmp_path / "root")
    assert image_cases.same(tmp_path / "own", tmp_path / "root")


def test_a_staggered_lattice_is_filled_in_parts_as_in_the_box(tmp_path):
    given = image_cases.tables(lattice="D3Q13")
    fields = image_cases.run(tmp_path, given=given)
    image_cases.check(tmp_path, fields)


def test_a_continued_run_has_the_same_files_and_series(tmp_path):
    outputs = [*image_cases.OUTPUTS, {"name": "checkpoint", "every": 10}]
    given = image_cases.tables(outputs=outputs)
    image_cases.run(tmp_path / "whole", given=given)
    short = given | {"run": {"steps": 10}}
    image_cases.run(tmp_path / "cut", given=short)
    image_cases.run(tmp_path / "cut", given=given, restart=tmp_path / "cut/checkpoint_000000010.h5")
    for name in ("snapshot.vtkhdf.series", "plane_7.vtkhdf.series", "line_up.vtkhdf.series"):
        assert (tmp_path / "cut" / name).read_text() == (tmp_path / "whole" / name).read_text()
    for path in (tmp_path / "whole").glob("*.vtkhdf"):
        assert path.stat().st_size == (tmp_path / "cut" / path.name).stat().st_size


def test_a_restart_removes_later_files_from_the_series(tmp_path):
    plane = {"name": "plane", "every": 5, "normal": "z", "position": 5, "label": "z"}
    outputs = [plane, {"name": "checkpoint", "every": 10}]
    image_cases.run(tmp_path, given=image_cases.tables(outputs=outputs))
    outputs[0] = plane | {"every": 20}
    given = image_cases.tables(outputs=outputs) | {"run": {"steps": 40}}
    image_cases.run(tmp_path, given=given, restart=tmp_path / "checkpoint_000000010.h5")
    series = json.loads((tmp_path / "plane_z.vtkhdf.series").read_text())
    assert [each["time"] for each in series["files"]] == [5, 10, 20, 40]


def test_two_dimensions_and_si(tmp_path):
    given = {
        "units": {"cell": 0.001, "step": 0.0001, "density": 1000},
        "lattice": {"name": "D2Q9"},
        "domain": {"size": ["20 mm", "12 mm"], "periodic": [True, True]},
        "fluid": {"viscosity": 1e-3},
        "run": {"steps": 10},
        "initial": {"u": ["0.1 + 0.05*sin(pi*y/6)", 0]},
        "output": [
            {"name": "snapshot", "every": 10},
            {"name": "line", "every": 10, "from": ["4 mm", 0], "to": ["4 mm", "12 mm"]},
            {"name": "box", "every": 10, "from": [2, 3], "to": [10, 9], "stride": 2},
        ],
    }
    found = image_cases.run(tmp_path, given=given)
    run = open_run(tmp_path)
    line, box = run.part("line_1"), run.part("box_2")
    assert line.times.tolist() == [0.001]
    assert np.array_equal(line.field("u"), run.field("u")[:, 4:5])
    assert np.allclose(line.field("u", lattice_units=True)[:, 0], found["u"][:, 4], rtol=1e-6)
    assert np.allclose(line.centres()[1], 0.001 * (np.arange(12) + 0.5))
    assert box.head.spacing == (0.002, 0.002, 0.001)
    assert np.allclose(box.head.origin, (0.002, 0.003, 0))
    mean = run.field("u")[3:9, 2:10].reshape(3, 2, 4, 2, 2).mean((1, 3))
    assert np.allclose(box.field("u"), mean, rtol=1e-6)


def test_vtk_reads_parts(tmp_path):
    vtk = pytest.importorskip("vtk")
    from vtk.util.numpy_support import vtk_to_numpy

    fields = image_cases.run(tmp_path)
    reader = vtk.vtkHDFReader()
    for name, part, expected in (
        ("plane_x", np.s_[:, :, 6:7], {"origin": (6, 0, 0), "points": (2, 13, 15)}),
        ("snapshot_gz", np.s_[:], {"origin": (0, 0, 0), "points": (21, 13, 15)}),
    ):
        reader.SetFileName(str(tmp_path / f"{name}_000000020.vtkhdf"))
        reader.Update()
        image = reader.GetOutput()
        assert image.GetOrigin() == expected["origin"]
        assert image.GetDimensions() == expected["points"]
        u = fields["u"][part]
        values = vtk_to_numpy(image.GetCellData().GetArray("u")).reshape(u.shape)
        assert np.allclose(values, u, rtol=1e-3, atol=1e-7)


def test_pyvista_opens_a_run_as_a_time_series(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    fields = image_cases.run(tmp_path)
    path = tmp_path / "snapshot.vtkhdf.series"
    times = [each["time"] for each in json.loads(path.read_text())["files"]]
    reader = pyvista.get_reader(path)
    assert list(reader.time_values) == times
    assert len(times) > 1
    reader.set_active_time_value(times[-1])
    u = reader.read().cell_data["u"]
    assert np.allclose(u, fields["u"].reshape(-1, 3), rtol=1e-3, atol=1e-7)


PLANE = {"name": "plane", "every": 5, "normal": "z", "position": 5}
LINE = {"name": "line", "every": 5, "from": [0, 4, 5], "to": [20, 4, 5]}
BOX = {"name": "box", "every": 5, "from": [2, 3, 4], "to": [17, 9, 13]}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (PLANE | {"position": 15}, r"position: found 15; allowed: 0 to 14"),
        (PLANE | {"stride": 0}, r"stride: found 0; allowed: a positive number"),
        (PLANE | {"normal": "w"}, r"normal"),
        (PLANE | {"fields": ["speed"]}, r"'speed' is not a field"),
        (LINE | {"to": [20, 5, 5]}, r"to: differs from `from` along 2 axes"),
        (LINE | {"to": [0, 4, 5]}, r"to: differs from `from` along 0 axes"),
        (LINE | {"to": [21, 4, 5]}, r"to: found \[21, 4, 5\]; allowed: positions in the box"),
        (BOX | {"from": [2, 3]}, r"from: found 2 coordinates; allowed: 3"),
        (BOX | {"to": [1, 9, 13]}, r"from: found .* allowed: from < to along x"),
        (BOX | {"stride": [2, 2]}, r"stride: found \(2, 2\); allowed"),
        (BOX | {"stride": 7}, r"stride: found 7 along y; allowed: 6 at most"),
        (BOX | {"from": [2, 3, float("nan")]}, r"from"),
        (BOX | {"begin": 10, "end": 5}, r"end: found 5; allowed: 10 = begin or later"),
        ({"name": "snapshot", "every": 5, "type": "float8"}, r"type"),
        ({"name": "snapshot", "every": 5, "compression": "lzma"}, r"compression"),
        ({"name": "snapshot", "every": 5, "box": [[0, 0, 0], [99, 1, 1]]}, r"box: to: found"),
    ],
)
def test_wrong_parts_are_refused(output, message):
    with pytest.raises(CaseError, match=message):
        parse_case(image_cases.tables(outputs=[output]), "parts.toml")


def test_a_plane_requires_three_dimensions():
    given = {
        "lattice": {"name": "D2Q9"}, "domain": {"size": [8, 8], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1}, "run": {"steps": 1}, "output": [PLANE],
    }  # fmt: skip
    with pytest.raises(CaseError, match="a plane requires three dimensions"):
        parse_case(given, "flat.toml")


def test_a_plane_in_two_dimensions_is_refused_with_a_coupling():
    """The coupling asks what the outputs need, before they are found to be wrong."""
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [8, 6], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1},
        "coupling": {"name": "shan_chen", "psi": "1-exp(-rho)", "G": -5.0},
        "output": [{"name": "plane", "every": 1, "normal": "z", "position": 1}],
        "run": {"steps": 1},
    }
    with pytest.raises(CaseError, match="a plane requires three dimensions"):
        parse_case(tables, "a.toml")

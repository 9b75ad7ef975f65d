"""Wall shear stress in a pipe whose wall is a mesh: tau = G R / 2 for a force G per volume."""

import h5py
import numpy as np
import pytest
from support.outputs_cases import make_case
from support.runs import run_case

trimesh = pytest.importorskip("trimesh")
RADIUS, FORCE = 6.0, 1e-5


def test_the_shear_in_a_pipe_is_that_of_poiseuille_flow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trimesh.creation.cylinder(RADIUS, height=40, sections=64).export("pipe.stl")
    shape = {"name": "mesh", "file": "pipe.stl", "scale": 1.0, "at": [8, 8, 4], "invert": True}
    faces = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}
    case = make_case(
        (16, 16, 8), [{"name": "surface", "every": 1500}], boundary=[faces],
        domain={"size": [16, 16, 8], "periodic": [False, False, True]},
        collision={"name": "trt"}, force={"name": "guo", "value": [0, 0, FORCE]},
        body=[{"label": "wall", "shape": shape, "boundary": {"name": "interpolated"}}],
        run={"steps": 1500},
    )  # fmt: skip
    run_case(case, tmp_path / "out")
    with h5py.File(tmp_path / "out/surface_0_000001500.vtkhdf") as file:
        cells = file["VTKHDF/CellData"]
        shear, across = cells["shear"][:, 2], cells["shear"][:, :2]
        y_plus = cells["y_plus"][()]
    exact = FORCE * RADIUS / 2
    assert np.isfinite(shear).all()
    assert shear.mean() == pytest.approx(exact, rel=0.06)
    assert shear.std() < 0.06 * exact
    assert abs(across).max() < 0.05 * exact
    assert (y_plus < np.sqrt(exact) / 0.1).all()  # the nearest cells are less than 1 away

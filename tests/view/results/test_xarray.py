"""The xarray backend: the values of open_run, read only where they are indexed."""

import numpy as np
import pytest

import mpilbm
from mpilbm.view.results.fields import FieldFile

xr = pytest.importorskip("xarray")
MpilbmBackend = pytest.importorskip("mpilbm.view.results.xarray_backend").MpilbmBackend

CASE = """
title = "wave"
[domain]
size = {size}
periodic = {periodic}
[run]
steps = 4
[initial]
u = {u}
[collision]
name = "bgk"
[fluid]
viscosity = 0.1
[lattice]
name = "{lattice}"
[[output]]
name = "snapshot"
every = 2
"""


@pytest.fixture(params=[2, 3])
def folder(request, tmp_path):
    """The output folder of a small run in two or three dimensions."""
    two = request.param == 2
    text = CASE.format(
        size=[7, 5] if two else [7, 5, 4],
        periodic=str([True] * request.param).lower(),
        u=["0.01*sin(2*pi*y/5)", "0"] if two else ["0.01*sin(2*pi*y/5)", "0", "0"],
        lattice="D2Q9" if two else "D3Q19",
    )
    (tmp_path / "wave.toml").write_text(text)
    case = mpilbm.load_case(tmp_path / "wave.toml")
    with mpilbm.Simulation(case, directory=tmp_path / "wave.out") as simulation:
        simulation.run()
    return tmp_path / "wave.out"


def test_values_are_those_of_open_run(folder):
    run = mpilbm.open_run(folder)
    with xr.open_dataset(folder, engine=MpilbmBackend) as data:
        cells = ("z", "y", "x")[-run.dimensions :]
        assert data["u"].dims == ("time", *cells, "component")
        assert data["rho"].dims == ("time", *cells)
        np.testing.assert_array_equal(data["step"], run.steps)
        np.testing.assert_array_equal(data["x"], np.arange(7) + 0.5)
        whole = np.stack([run.field("u", step) for step in run.steps])
        assert np.ptp(whole) > 0
        np.testing.assert_array_equal(data["u"], whole)
        picked = data["u"].isel(time=-1, x=slice(1, 7, 2), y=[4, 0, 2], component=0)
        np.testing.assert_array_equal(picked, whole[-1][..., 1:7:2, 0][..., [4, 0, 2], :])
        np.testing.assert_array_equal(data["u"][::-1, ..., ::-1, :], whole[::-1, ..., ::-1, :])
        assert data["u"][:0].values.shape == (0, *whole.shape[1:])


def test_opening_reads_no_values(folder, monkeypatch):
    def refuse(*_):
        raise AssertionError("values are read")

    monkeypatch.setattr(FieldFile, "_read", refuse)
    with xr.open_dataset(folder, engine=MpilbmBackend) as data:
        part = data["u"].isel(x=slice(2, 4))
        with pytest.raises(AssertionError, match="values are read"):
            part.load()


def test_wrong_folder_and_part(folder, tmp_path):
    with pytest.raises(mpilbm.CommandError, match="no such folder"):
        xr.open_dataset(tmp_path / "absent", engine=MpilbmBackend)
    with pytest.raises(mpilbm.CommandError, match="plane_a"):
        xr.open_dataset(folder, engine=MpilbmBackend, part="plane_a")


def test_names_that_no_folder_can_have_belong_to_other_backends():
    assert not any(MpilbmBackend().guess_can_open(name) for name in ("x" * 300, "a\0b", 3))

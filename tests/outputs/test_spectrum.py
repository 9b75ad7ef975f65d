"""The output spectrum: exact waves, sums, the prescribed spectrum, SI, restarts, wrong input."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.outputs_cases import BODY, make_case
from support.runs import run_case

import mpilbm
from mpilbm.core.errors import CaseError
from mpilbm.outputs.core.tables import read
from mpilbm.outputs.spectra import Shells, spectra
from mpilbm.parallel.ranks import Serial

SPECTRUM = {"name": "spectrum", "every": 2, "begin": 0}
DOUBLE = {"precision": {"storage": "float64", "compute": "float64"}}
TAYLOR_GREEN = {"u": ["0.03*sin(2*pi*x/nx)*cos(2*pi*y/ny)", "-0.03*cos(2*pi*x/nx)*sin(2*pi*y/ny)",
                      0]}  # fmt: skip


def shell_spectra(u):
    """Energy, squared gradient and enstrophy in shells of u (nz, ny, nx, D)."""
    shells = Shells(u.shape[:3])
    waves = [shells.in_planes(u[..., axis]) for axis in range(u.shape[3])]
    return shells, spectra(Serial(), shells, waves)


@pytest.mark.parametrize("size", [(8, 8, 8), (9, 6, 12), (8, 1, 10)])
def test_a_wave_is_in_its_shell_with_its_energy_and_enstrophy(size, monkeypatch):
    monkeypatch.setattr("mpilbm.outputs.spectra.COLUMNS", 7)
    nz, _, nx = size
    z, _, x = np.meshgrid(*(np.arange(n) for n in size), indexing="ij")
    u = np.zeros((*size, 3 if size[1] > 1 else 2))
    u[..., 1] = 0.3 + 0.5 * np.sin(4 * np.pi * x / nx)
    u[..., 0] = 0.2 * np.cos(2 * np.pi * z / nz)
    shells, (energy, _, enstrophy) = shell_spectra(u)
    k_x, k_z = 4 * np.pi / nx, 2 * np.pi / nz
    expected = np.zeros((2, shells.count))
    expected[0, 0] = 0.3**2 / 2
    for k, amplitude in ((k_x, 0.5), (k_z, 0.2)):
        number = round(k / shells.dk)
        expected[:, number] += amplitude**2 / 4, k**2 * amplitude**2 / 4
    assert np.allclose([energy, enstrophy], expected, rtol=0, atol=1e-15)


def test_divergence_has_energy_and_no_enstrophy():
    u = np.zeros((4, 6, 8, 3))
    u[..., 0] = np.sin(2 * np.pi * np.arange(8) / 8)
    _, (energy, _, enstrophy) = shell_spectra(u)
    assert energy.sum() == pytest.approx(0.25)
    assert abs(enstrophy).max() < 1e-16


def test_the_energy_is_that_of_the_cells_and_of_the_tool():
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    try:
        import spectral_balance
    finally:
        sys.path.pop(0)
    u = np.random.default_rng(1).random((7, 6, 5, 3))
    shells, (energy, _, _) = shell_spectra(u)
    assert energy.sum() == pytest.approx((u**2).sum(axis=3).mean() / 2, rel=1e-14)
    k, E = spectral_balance.spectrum(u, (5, 6, 7))
    assert np.allclose(shells.k, k, rtol=1e-15)
    assert np.allclose(energy / shells.dk, E, rtol=1e-12)


def test_the_table_of_a_run_has_the_taylor_green_flow(tmp_path):
    case = make_case(
        (16, 16, 4),
        [SPECTRUM],
        initial=TAYLOR_GREEN | {"non_equilibrium": True},
        run={"steps": 3},
        **DOUBLE,
    )
    run_case(case, tmp_path)
    rows = read(tmp_path / "spectrum_0.h5")
    k = 2 * np.pi / 16
    assert rows["step"].tolist() == [0, 2, 3]
    assert rows["total_energy"][0] == pytest.approx(0.03**2 / 4, rel=1e-12)
    assert rows["total_enstrophy"][0] == pytest.approx(2 * k**2 * 0.03**2 / 4, rel=1e-12)
    assert rows["energy"][0, 1] * k == pytest.approx(rows["total_energy"][0], rel=1e-12)
    decay = rows["total_energy"][1] / rows["total_energy"][0]
    assert decay == pytest.approx(np.exp(-4 * 0.1 * k**2 * 2), rel=0.005)


def test_the_spectrum_of_a_random_flow_is_found_again(tmp_path):
    initial = {"random": {"speed": 0.03, "peak": 2, "slope": 4}}
    case = make_case((16, 16), [SPECTRUM], initial=initial, run={"steps": 0}, **DOUBLE)
    run_case(case, tmp_path)
    rows = read(tmp_path / "spectrum_0.h5")
    n = np.arange(rows["energy"].shape[1])
    wanted = np.where(n <= 6, n**4.0 * np.exp(-2 * (n / 2) ** 2), 0)
    wanted *= 0.03**2 / 2 / wanted.sum()
    assert np.allclose(rows["energy"][0] * 2 * np.pi / 16, wanted, rtol=1e-8, atol=1e-18)


def test_units_are_si(tmp_path):
    case = make_case(
        (8, 8, 6), [SPECTRUM], initial=TAYLOR_GREEN, run={"steps": 0},
        units={"cell": 0.01, "step": 0.001, "density": 1000}, **DOUBLE,
    )  # fmt: skip
    run_case(case, tmp_path)
    with h5py.File(tmp_path / "spectrum_0.h5") as file:
        assert file["k"][1] == pytest.approx(2 * np.pi / 0.08)
        assert file["total_energy"][0] == pytest.approx((10 * 0.03) ** 2 / 4)
        assert file["energy"][0].sum() * file.attrs["dk"] == pytest.approx(file["total_energy"][0])
        assert file["enstrophy"].attrs["unit"] == "m/s^2"


def test_a_restart_continues_the_table(tmp_path):
    outputs = [SPECTRUM, {"name": "checkpoint", "every": 4}]
    case = make_case((8, 7), outputs, initial={"random": {"speed": 0.03, "peak": 1}},
                     run={"steps": 7})  # fmt: skip
    run_case(case, tmp_path / "whole")
    with mpilbm.Simulation(case, directory=tmp_path / "cut") as sim:
        sim.run(6)
    checkpoint = tmp_path / "cut" / "checkpoint_000000004.h5"
    with mpilbm.Simulation(case, directory=tmp_path / "cut", restart=checkpoint) as sim:
        sim.run()
    whole, cut = (read(tmp_path / name / "spectrum_0.h5") for name in ("whole", "cut"))
    assert whole["step"].tolist() == [0, 2, 4, 6, 7]
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)


def test_boxes_without_waves_are_refused():
    with pytest.raises(CaseError, match="without bodies"):
        make_case(outputs=[SPECTRUM], body=BODY)
    walls = {"name": "bounce_back", "where": ["z-", "z+"]}
    with pytest.raises(CaseError, match=r"periodic in all directions.*true, true, false"):
        make_case(outputs=[SPECTRUM], domain={"size": [5, 4, 7], "periodic": [True, True, False]},
                  boundary=[walls])  # fmt: skip
    with pytest.raises(CaseError, match="stores all nodes"):
        make_case((6, 6, 8), [SPECTRUM], lattice={"name": "D3Q13"}, collision={"name": "mrt"})

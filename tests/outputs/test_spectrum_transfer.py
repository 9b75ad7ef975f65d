"""Dissipation and transfer of the output spectrum, its CSV, and the enstrophy of the monitor."""

import re
import tracemalloc

import h5py
import numpy as np
import pytest
from support.commands import call
from support.outputs_cases import BODY, make_case, make_context
from support.runs import run_case
from support.spectra import convective_transfer, solenoidal

import mpilbm
from mpilbm.core.errors import CaseError, FileSystemError
from mpilbm.core.units import in_words
from mpilbm.outputs.core.tables import read
from mpilbm.outputs.spectra import Shells, spectra, velocity, with_transfer
from mpilbm.parallel.ranks import Serial
from mpilbm.view.results.tables import read_table

SPECTRUM = {"name": "spectrum", "every": 2, "begin": 0}
DOUBLE = {"precision": {"storage": "float64", "compute": "float64"}}
RANDOM = {"initial": {"random": {"speed": 0.03, "peak": 1}}}


def transfer(u):
    """The shells, and the four rows of `with_transfer` of u (*shape, D)."""
    D = u.shape[-1]
    cells = u if D == 3 else u[:, None]
    shells = Shells(cells.shape[:3])
    waves = [shells.in_planes(cells[..., axis]) for axis in range(D)]
    return shells, with_transfer(Serial(), shells, waves)


@pytest.mark.parametrize("shape", [(9, 12, 8), (12, 9)])
def test_the_transfer_is_that_of_the_convective_form(shape, monkeypatch):
    monkeypatch.setattr("mpilbm.outputs.spectra.COLUMNS", 7)
    u = solenoidal(shape, len(shape), seed=1) + 0.2
    shells, (*_, found) = transfer(u)
    k, rate = convective_transfer(u)
    numbers = np.rint(np.sqrt((k**2).sum(axis=0)) / shells.dk).astype(int)
    # the reference contains waves beyond 1/3 period only in the product, not in u
    expected = np.bincount(numbers.ravel(), rate.ravel(), shells.count)
    assert abs(found).max() > 1e-5
    assert np.allclose(found, expected, rtol=0, atol=1e-13 * abs(rate).sum())


@pytest.mark.parametrize("shape", [(6, 8, 9), (10, 7)])
def test_the_transfer_of_any_flow_adds_up_to_0(shape):
    u = np.random.default_rng(2).standard_normal((*shape, len(shape)))
    _, (*_, found) = transfer(u)
    assert abs(found.sum()) < 1e-13 * abs(found).sum()
    assert abs(found).sum() > 0


def test_the_gradient_of_a_divergent_wave_counts_for_the_dissipation():
    u = np.zeros((4, 6, 8, 3))
    u[..., 0] = np.sin(2 * np.pi * np.arange(8) / 8)
    _, (_, gradient, enstrophy, rate) = transfer(u)
    assert gradient.sum() == pytest.approx((2 * np.pi / 8) ** 2 / 4)
    assert abs(enstrophy).max() < 1e-16
    assert abs(rate).max() < 1e-16


def test_the_dissipation_is_the_loss_of_a_decaying_flow(tmp_path):
    case = make_case(
        (24, 24), [SPECTRUM | {"transfer": True}], run={"steps": 40},
        initial={"u": ["0.02*sin(2*pi*y/ny)", 0], "non_equilibrium": True}, **DOUBLE,
    )  # fmt: skip
    run_case(case, tmp_path)
    rows = read(tmp_path / "spectrum_0.h5")
    loss = (rows["total_energy"][5] - rows["total_energy"][15]) / 20
    assert loss == pytest.approx(rows["total_dissipation"][5:16].mean(), rel=0.006)
    assert rows["total_dissipation"] == pytest.approx(2 * 0.1 * rows["total_enstrophy"], rel=1e-6)
    dk = 2 * np.pi / 24
    assert rows["dissipation"].sum(axis=1) * dk == pytest.approx(rows["total_dissipation"])
    assert abs(rows["transfer"]).max() < 1e-12 * rows["dissipation"].max()


def test_the_energy_of_each_shell_changes_by_transfer_and_dissipation(tmp_path):
    case = make_case(
        (32, 32), [SPECTRUM | {"begin": 200, "every": 20, "transfer": True}], run={"steps": 600},
        fluid={"viscosity": 0.01}, collision={"name": "bgk"}, **DOUBLE,
        initial={"random": {"speed": 0.02, "peak": 2}, "iterate": 96, "non_equilibrium": True},
    )  # fmt: skip
    run_case(case, tmp_path)
    rows = read(tmp_path / "spectrum_0.h5")
    change = (rows["energy"][2:] - rows["energy"][:-2]).mean(axis=0) / 40
    balance = (rows["transfer"] - rows["dissipation"])[1:-1].mean(axis=0)
    assert abs(rows["transfer"]).sum() > 0.1 * abs(rows["dissipation"]).sum()
    assert abs(change - balance).sum() < 0.03 * abs(change).sum()


def test_a_start_without_stress_loses_more_energy(tmp_path):
    """The loss besides the viscous one is 2 cs2 tau (1 - tau) k^2 of the energy; see the manual."""
    nu, n = 0.02, 24
    case = make_case(
        (n, n), [SPECTRUM], run={"steps": 120}, fluid={"viscosity": nu},
        initial={"u": ["0.02*sin(2*pi*y/ny)", 0]}, **DOUBLE,
    )  # fmt: skip
    run_case(case, tmp_path)
    rows = read(tmp_path / "spectrum_0.h5")
    tau, k = 3 * nu + 0.5, 2 * np.pi / n
    energy = rows["total_energy"]
    viscous = np.trapezoid(rows["total_dissipation"], rows["time"])
    more = (energy[0] - energy[-1] - viscous) / energy[0]
    assert more == pytest.approx(2 / 3 * tau * (1 - tau) * k**2, rel=0.2)


@pytest.mark.parametrize("size", [(6, 5, 8), (7, 9)])
def test_the_csv_has_the_numbers_of_the_h5(tmp_path, size):
    outputs = [SPECTRUM | {"transfer": True}, SPECTRUM | {"transfer": True, "format": "csv"}]
    units = {"cell": 0.01, "step": 0.001, "density": 1000}
    run_case(make_case(size, outputs, run={"steps": 3}, units=units, **RANDOM), tmp_path)
    rows, table = read(tmp_path / "spectrum_0.h5"), read_table(tmp_path / "spectrum_1.csv")
    with h5py.File(tmp_path / "spectrum_0.h5") as file:
        k, nu = file["k"][:], file.attrs["viscosity"]
    assert nu == pytest.approx(0.1 * 0.01**2 / 0.001)
    assert table["step"].tolist() == np.repeat([0, 2, 3], len(k)).tolist()
    assert np.array_equal(table["time (s)"], np.repeat(rows["time"], len(k)))
    assert np.array_equal(table["k (1/m)"], np.tile(k, 3))
    columns = read_table(tmp_path / "spectrum_0.h5")
    assert "k" not in columns  # it has a value for each shell, not for each row
    assert np.array_equal(columns["energy"], rows["energy"])
    for name, unit in (("energy", "m^3/s^2"), ("enstrophy", "m/s^2"), ("dissipation", "m^3/s^3"),
                       ("transfer", "m^3/s^3")):  # fmt: skip
        assert np.array_equal(table[f"{name} ({unit})"], rows[name].ravel()), name


def test_a_restart_continues_the_csv(tmp_path):
    outputs = [SPECTRUM | {"format": "csv", "label": "a"}, {"name": "checkpoint", "every": 4}]
    case = make_case((6, 7), outputs, run={"steps": 7}, **RANDOM)
    run_case(case, tmp_path / "whole")
    with mpilbm.Simulation(case, directory=tmp_path / "cut") as sim:
        sim.run(6)
    table = tmp_path / "cut" / "spectrum_a.csv"
    table.write_text(table.read_text().rsplit("\n", 3)[0])  # an incomplete step, after the restart
    checkpoint = tmp_path / "cut" / "checkpoint_000000004.h5"
    with mpilbm.Simulation(case, directory=tmp_path / "cut", restart=checkpoint) as sim:
        sim.run()
    assert table.read_text() == (tmp_path / "whole" / "spectrum_a.csv").read_text()
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], *lines[3:]]) + "\n")
    for message in ("line 2 is damaged: the checksum", "6 numbers, the first the step 0"):
        again = mpilbm.Simulation(case, directory=tmp_path / "cut", restart=checkpoint)
        with again as sim, pytest.raises(FileSystemError, match=message):
            sim.run()
        table.with_name("spectrum_a.csv.digests").unlink(missing_ok=True)  # as in earlier versions


def test_the_monitor_has_the_enstrophy_of_the_spectrum(tmp_path):
    units = {"cell": 0.01, "step": 0.001, "density": 1000}
    outputs = [{"name": "monitor", "every": 2, "spectral": True}, SPECTRUM | {"every": 2}]
    run_case(make_case((8, 7, 6), outputs, run={"steps": 4}, units=units, **RANDOM), tmp_path)
    rows = read(tmp_path / "spectrum_1.h5")
    table = read_table(tmp_path / "monitor.csv")
    volume = 8 * 7 * 6 * 0.01**3
    found = table["enstrophy_spectral_m3_per_s2"]
    assert found == pytest.approx(rows["total_enstrophy"] * volume, rel=1e-12)
    assert found == pytest.approx(table["enstrophy_spectral"] * 0.01**3 / 0.001**2, rel=1e-12)
    assert (table["enstrophy"] < 0.95 * table["enstrophy_spectral"]).all()  # central differences


def test_a_closure_and_coupled_fluids_leave_the_dissipation_out(tmp_path):
    closure = {"name": "bgk", "closure": {"name": "smagorinsky"}}
    case = make_case((6, 6, 8), [SPECTRUM], run={"steps": 2}, collision=closure, **RANDOM)
    assert "no column 'dissipation'" in case.outputs[0].warnings(case)[0].message
    run_case(case, tmp_path)
    assert "energy" in read(tmp_path / "spectrum_0.h5")
    assert "dissipation" not in read(tmp_path / "spectrum_0.h5")


@pytest.mark.parametrize("spectral", [True, False])
def test_boxes_without_waves_have_no_spectral_enstrophy(spectral):
    monitor = {"name": "monitor", "every": 2, "spectral": spectral}
    walls = {"name": "bounce_back", "where": ["z-", "z+"]}
    refused = (
        (r"spectral: requires a box that is periodic.*true, true, false",
         {"domain": {"size": [5, 4, 7], "periodic": [True, True, False]}, "boundary": [walls]}),
        ("spectral: requires a box without bodies", {"body": BODY}),
    )  # fmt: skip
    for message, tables in refused:
        if not spectral:
            make_case(outputs=[monitor], **tables)
            continue
        with pytest.raises(CaseError, match=message):
            make_case(outputs=[monitor], **tables)


@pytest.mark.parametrize("bad", [{"format": "h6"}, {"transfer": "yes please"}, {"every": -1}])
def test_wrong_keys_are_refused(bad):
    with pytest.raises(CaseError, match=next(iter(bad))):
        make_case((6, 6, 6), [SPECTRUM | bad])


def peak_bytes(context, compute):
    """The largest memory of the host during the transforms of a velocity."""
    tracemalloc.start()
    waves = velocity.VelocityWaves(context)
    waves.start()
    compute(Serial(), waves.shells, waves.take())
    waves.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_the_memory_of_the_transforms_is_counted(tmp_path):
    case = make_case((64, 60, 65))
    context = make_context(tmp_path, case)
    u = context.solver.fields(("u",), 0, case.shape[0])["u"]
    context.solver.fields = lambda names, begin, end: {"u": u[begin:end]}
    for compute in (spectra, with_transfer):
        counted = velocity.host_bytes(case, case.shape[0], compute is with_transfer)
        assert counted / 5 < peak_bytes(context, compute) <= counted


def test_too_little_memory_is_an_error(tmp_path, monkeypatch):
    case = make_case((8, 8, 8), [SPECTRUM], run={"steps": 1})
    monkeypatch.setattr(velocity.memory, "least", lambda: (10_000, 10_000))
    with pytest.raises(CaseError, match=r"main memory per rank, but 10 kB are free; use more"):
        velocity.VelocityWaves(make_context(tmp_path, case))


@pytest.mark.parametrize(("backend", "line"), [("cpu", "spectrum"), ("cuda", "outputs")])
def test_check_reports_the_memory_of_the_transforms(tmp_path, backend, line):
    case = tmp_path / "box.toml"
    case.write_text("""
lattice = {name = "D3Q19"}
domain = {size = [64, 64, 64], periodic = [true, true, true]}
fluid = {viscosity = 0.1}
run = {steps = 10}
output = [{name = "spectrum", every = 5}, {name = "monitor", every = 5, spectral = true}]
""")
    output = call("check", case, "--gpu-memory", "80", "--set", f"backend.name={backend}").output
    found = re.search(rf"{line} +([0-9.]+ MB) +(per rank|of main memory per rank)", output)
    assert found, output
    box = make_case((64, 64, 64), [SPECTRUM])
    count = box.outputs[0].host_bytes(box, 64) * (2 if backend == "cuda" else 1)
    assert found[1] == in_words(count)

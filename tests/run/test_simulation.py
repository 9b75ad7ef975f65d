"""A simulation in Python has the results of the command line, and reports mistakes as it does."""

import gc
import subprocess
import sys
import weakref

import h5py
import numpy as np
import pytest
from support.outputs_cases import make_case
from support.runs import SHEAR, flow, monitor, run_case, state, summary

import mpilbm
from mpilbm.backends.cpu import CpuDevice
from mpilbm.case.case import parse_case
from mpilbm.parallel import launcher
from mpilbm.parallel.ranks import Serial
from mpilbm.run import progress

WALLS = [
    {"name": "bounce_back", "where": ["x-", "x+", "y-"]},
    {"name": "bounce_back", "where": ["y+"], "velocity": [0.05, 0]},
]
BALL = {
    "label": "ball",
    "shape": {"name": "cylinder", "centre": [4, 4], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
CAVITY = {
    "lattice": {"name": "D2Q9"},
    "domain": {"size": [9, 8]},
    "fluid": {"viscosity": 0.05},
    "boundary": WALLS,
    "run": {"steps": 30},
    "backend": {"name": "cpu"},
}
OIL = {
    "fluid": [
        {"label": "oil", "viscosity": 0.1, "initial": {"rho": 0.7}},
        {"label": "water", "viscosity": 0.1, "initial": {"rho": 0.3}},
    ],
    "coupling": {"name": "shan_chen", "G": [[0, 0.4], [0.4, 0]]},
    "precision": {"compute": "float64", "storage": "float64"},
}


def simulation(case, **options):
    return mpilbm.Simulation(case, Serial(), **options)


def cavity(**more):
    return parse_case(CAVITY | more, "cavity.toml")


# The same results in pieces, in one run, and by the command line


def test_pieces_leave_the_files_of_the_command_bit_for_bit(tmp_path):
    run_case(flow(), tmp_path / "command")
    with simulation(flow(), directory=tmp_path / "python") as sim:
        for steps in (7, 0, 13):
            sim.run(steps)
        sim.run()
        assert sim.step == 30
    names = [path.name for path in sorted((tmp_path / "command").iterdir())]
    assert [path.name for path in sorted((tmp_path / "python").iterdir())] == names
    assert np.array_equal(state(tmp_path / "python"), state(tmp_path / "command"))
    assert monitor(tmp_path / "python") == monitor(tmp_path / "command")
    assert summary(tmp_path / "python")["status"] == "done"


def test_run_goes_on_beyond_the_last_step_of_the_case(tmp_path):
    with simulation(flow(), directory=tmp_path / "out") as sim:
        sim.run(35)
        assert sim.step == 35
        sim.run()
        assert sim.step == 35
    assert [row.partition(",")[0] for row in monitor(tmp_path / "out")][-2:] == ["30", "35"]


def test_without_a_folder_nothing_is_written_or_printed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with simulation(flow()) as sim:
        sim.run(20)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert "1 rank on" in sim.messages[-1]


def test_verbose_prints_the_messages(capfd, monkeypatch):
    monkeypatch.setattr(progress, "SLOW_SECONDS", 1e6)
    with simulation(flow(), verbose=True) as sim:
        pass
    assert capfd.readouterr().err.splitlines() == sim.messages


def test_findings_are_those_of_check():
    with simulation(cavity(fluid={"viscosity": 1e-4})) as sim:
        assert any("viscosity" in found.line for found in sim.findings)
        assert [found.line for found in sim.findings] == sim.messages[: len(sim.findings)]


def test_a_steady_flow_ends_a_run_with_a_reason():
    case = make_case(
        (7, 6),
        [],
        initial={"u": [0.01, 0]},
        run={"steps": 100, "steady": {"every": 10, "tolerance": 0.1}},
    )
    with simulation(case) as sim:
        sim.run(50)
        assert sim.step == 10
        assert sim.reason.startswith("steady")
    assert (sim.step, sim.reason[:6]) == (10, "steady")


def test_a_machine_without_mpi_has_one_rank(monkeypatch):
    monkeypatch.setattr(launcher, "library", lambda: None)
    monkeypatch.setattr(launcher, "several_ranks", lambda: False)
    with mpilbm.Simulation(cavity()) as sim:
        sim.run(1)
        assert isinstance(sim.comm, Serial)
        assert (sim.rank, sim.step) == (0, 1)


# The function of the user


def test_the_function_is_called_at_multiples_and_may_change_the_state():
    seen = []

    def call(sim):
        seen.append((sim.step, sim.sums()["kinetic_energy"]))
        if sim.step == 12:
            sim.set_field("u", np.zeros((8, 9, 2)))

    with simulation(cavity()) as sim:
        sim.run(5, every=6, call=call)
        sim.run(14, every=6, call=call)
    assert [step for step, _ in seen] == [6, 12, 18]
    assert seen[2][1] < seen[1][1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"steps": -1}, r"run: steps = -1; allowed: whole numbers >= 0"),
        ({"steps": 1.5}, r"run: steps = 1\.5; allowed: whole numbers"),
        ({"steps": 1, "every": 0}, "run: every = 0; allowed: whole numbers >= 1"),
        ({"steps": 1, "call": lambda sim: sim.run(1)}, "run: is called by the function"),
        ({"steps": 1, "call": lambda sim: sim.close()}, "close: is called by the function"),
    ],
)
def test_wrong_arguments_of_run(arguments, sentence):
    with simulation(cavity()) as sim, pytest.raises(mpilbm.UsageError, match=sentence):
        sim.run(**arguments)


def test_an_unstable_flow_is_reported_with_its_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        simulation(
            cavity(
                fluid={"viscosity": 1e-6},
                run={"steps": 5000},
                boundary=[*WALLS[:1], WALLS[1] | {"velocity": [0.5, 0]}],
            )
        ) as sim,
        pytest.raises(mpilbm.NonFiniteError, match=r"step \d+: .*without an output folder"),
    ):
        sim.run()
    assert list(tmp_path.iterdir()) == []


# Fields


def test_fields_have_the_values_and_shapes_of_snapshots(tmp_path):
    case = make_case(
        (5, 4, 7),
        [],
        initial={"u": ["0.02*sin(2*pi*z/nz)", 0, 0.01]},
        body=[BALL | {"shape": {"name": "sphere", "centre": [2, 2, 3], "radius": 1.1}}],
    )
    names = ["rho", "u", "vorticity", "q_criterion"]
    with simulation(case) as sim:
        sim.run(3)
        sim.save(tmp_path / "a.vtkhdf", names)
        fields = {name: sim.field(name) for name in (*names, "solid")}
        local = {name: sim.field(name, local=True) for name in fields}
        device = {name: sim.device_field(name) for name in fields}
        assert sim.planes == (0, 7)
    assert fields["u"].shape == (7, 4, 5, 3)
    assert fields["solid"].dtype == bool
    assert fields["solid"].sum() > 0
    with h5py.File(tmp_path / "a.vtkhdf") as file:
        for name, values in fields.items():
            assert np.array_equal(file[f"VTKHDF/CellData/{name}"], values), name
            assert np.array_equal(local[name], values)
            assert np.array_equal(device[name], values)
        assert file["mpilbm"].attrs["step"] == 3


def test_fields_are_saved_in_a_case_with_snapshots(tmp_path):
    with simulation(cavity(output=[{"name": "snapshot"}])) as sim:
        sim.save(tmp_path / "a.vtkhdf", ["rho"])
        with h5py.File(tmp_path / "a.vtkhdf") as file:
            assert np.array_equal(np.squeeze(file["VTKHDF/CellData/rho"]), sim.field("rho"))


def test_fields_in_two_dimensions():
    with simulation(cavity(body=[BALL])) as sim:
        shapes = [sim.field(name).shape for name in ("rho", "u", "vorticity", "solid")]
        solid = sim.field("solid")
        assert shapes == [(8, 9), (8, 9, 2), (8, 9), (8, 9)]
        assert np.all(sim.field("rho")[solid] == 1)
        assert np.all(sim.field("u")[solid] == 0)


def test_a_layout_of_fluid_cells_has_density_one_in_solids():
    with simulation(cavity(body=[BALL], layout={"name": "indirect"})) as sim:
        sim.run(2)
        assert np.array_equal(sim.device_field("rho"), sim.field("rho"))


def test_the_fields_of_a_staggered_lattice_are_at_all_nodes():
    case = parse_case(
        CAVITY
        | {
            "lattice": {"name": "D3Q13"},
            "collision": {"name": "mrt"},
            "boundary": [],
            "domain": {"size": [6, 4, 4], "periodic": [True] * 3},
        },
        "a.toml",
    )
    with simulation(case) as sim:
        sim.set_field("u", lambda x, y, z: (0.01, 0.0 * x, 0.0))
        assert sim.field("u").shape == (4, 4, 6, 3)
        assert sim.device_field("u").shape == (4, 4, 3, 3)
        assert np.allclose(sim.field("u")[..., 0], 0.01, atol=1e-8)


def test_the_density_of_a_fluid_by_its_label():
    with simulation(make_case((6, 5), [], **OIL)) as sim:
        assert np.array_equal(sim.field("rho", fluid="oil"), sim.field("rho_oil"))
        with pytest.raises(mpilbm.UsageError, match="'rho' of the fluid 'milk' is not a field"):
            sim.field("rho", fluid="milk")


def test_an_unknown_field_is_reported_with_the_nearest_name():
    sentence = r"field: 'vortcity' is not a field .* allowed: rho, u, .*; did you mean 'vorticity'"
    with simulation(cavity()) as sim:
        with pytest.raises(mpilbm.UsageError, match=sentence):
            sim.field("vortcity")
        with pytest.raises(mpilbm.UsageError, match="save: fields: 'v' is not a field"):
            sim.save("a.vtkhdf", ["v"])


# Setting fields


@pytest.mark.parametrize("layout", ["ab", "aa", "esopull", "indirect"])
@pytest.mark.parametrize("steps", [0, 3, 4])
def test_a_field_that_is_set_is_read_again_and_the_other_one_is_kept(layout, steps):
    force = {"name": "guo", "value": [1e-4, -2e-4]}
    precision = {"compute": "float64", "storage": "float64"}
    case = cavity(layout={"name": layout}, force=force, precision=precision, body=[BALL])
    with simulation(case) as sim:
        sim.run(steps)
        fluid, rho = ~sim.field("solid"), sim.field("rho")
        sim.set_field("u", lambda x, y: (0.01 * np.sin(x) * y, 0.002))
        y, x = np.meshgrid(np.arange(8) + 0.5, np.arange(9) + 0.5, indexing="ij")
        u = np.stack([0.01 * np.sin(x) * y, 0.002 + 0 * x], axis=-1)
        assert np.abs(sim.field("u") - u)[fluid].max() < 1e-14
        assert np.abs(sim.field("rho") - rho)[fluid].max() < 1e-14
        sim.set_field("rho", 1 + 0.01 * np.cos(x))
        assert np.abs(sim.field("rho") - 1 - 0.01 * np.cos(x))[fluid].max() < 1e-14
        assert np.abs(sim.field("u") - u)[fluid].max() < 1e-14
        sim.run(1)


@pytest.mark.parametrize("non_equilibrium", [False, True])
def test_setting_the_initial_fields_starts_again(non_equilibrium):
    """The flow is that from the initial fields, with and without the viscous stress."""
    initial = SHEAR | {"non_equilibrium": non_equilibrium}
    case = make_case((7, 6), [], initial=initial, precision={"compute": "float64"})

    def u(x, y):
        return 0.05 * np.sin(2 * np.pi * y / 6), 0.02 * np.cos(2 * np.pi * x / 7)

    with simulation(case) as sim, simulation(case) as again:
        again.set_field("u", u)
        again.set_field("rho", np.ones((6, 7)))
        for one in (sim, again):
            one.run(4)
        assert np.abs(sim.field("u") - again.field("u")).max() < 1e-8


def test_the_state_of_coupled_fluids_is_set():
    with simulation(make_case((6, 5), [], **OIL)) as sim:
        sim.run(2)
        sim.set_field("rho", lambda x, y: 0.5 + 0.1 * np.sin(x), fluid="oil")
        x = np.broadcast_to(np.arange(6) + 0.5, (5, 6))
        assert np.abs(sim.field("rho_oil") - 0.5 - 0.1 * np.sin(x)).max() < 1e-14
        assert np.abs(sim.field("rho_water") - 0.3).max() < 1e-14
        assert np.abs(sim.field("u")).max() < 1e-14
        with pytest.raises(mpilbm.UsageError, match="'rho' cannot be set; allowed: rho_oil, rho_w"):
            sim.set_field("rho", np.ones((5, 6)))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("u", np.zeros((9, 8, 2)), r"values of shape \(9, 8, 2\); allowed: \(8, 9, 2\), the cells"),
        ("rho", "ball", "values of type <U4; allowed: real numbers; give an array"),
        ("rho", lambda x, y: x[0, :3], r"rho.*returns float64 values of shape \(3,\) for points"),
        ("rho", lambda x, y: x[9, 9], r"set_field\('rho'\): .*raised IndexError.*line \d+ of test"),
        ("u", lambda x, y: x, r"returns an array of shape \(8, 9\) for.*: a tuple \(u, v\)"),
        ("u", lambda x: x, r"takes 1 arguments; allowed: \(x, y\) or \(x, y, t\)"),
        ("rho", lambda x, y: np.inf, r"rho = inf in cell \(0, 0\) .*is not finite"),
        ("rho", lambda x, y: 1e7, r"rho = 1e\+07 in cell .* is outside the range of densities"),
        ("u", lambda x, y: (0.1 * (x > 3), 0.6 * (y > 2)), r"\|u\| = 0.6 in cell \(0, 2\).*sound"),
        ("vorticity", np.zeros((8, 9)), "'vorticity' cannot be set; allowed: rho, u"),
    ],
)
def test_values_that_cannot_be_set(name, value, sentence):
    with simulation(cavity()) as sim:
        before = sim.field("u")
        with pytest.raises(mpilbm.UsageError, match=sentence):
            sim.set_field(name, value)
        assert np.array_equal(sim.field("u"), before)


def test_fluids_without_a_density_field_cannot_be_set():
    fluids = [{"label": "both", "viscosity": 0.1}, {"label": "phi", "viscosity": 0.1}]
    case = make_case(
        (6, 5), [], fluid=fluids, coupling={"name": "free_energy", "a": 0.02, "kappa": 0.08}
    )
    with (
        simulation(case) as sim,
        pytest.raises(
            mpilbm.UsageError, match="this flow has no field rho_both to set populations"
        ),
    ):
        sim.set_field("u", np.zeros((5, 6, 2)))


# Sums, forces and time


def test_sums_are_those_of_the_monitor(tmp_path):
    with simulation(flow(10), directory=tmp_path) as sim:
        sim.run()
        sums = sim.sums()
    header, *rows = (tmp_path / "monitor.csv").read_text().splitlines()
    row = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    assert all(float(row[name]) == value for name, value in sums.items())
    assert {"mass", "momentum_x", "kinetic_energy", "enstrophy", "max_speed"} == set(sums) - {
        "momentum_y"
    }


def test_forces_are_those_of_the_output(tmp_path):
    output = [{"name": "body_forces", "every": 5}]
    with simulation(cavity(body=[BALL], output=output), directory=tmp_path) as sim:
        first = sim.forces()["ball"]
        sim.run(4)
        before = sim.forces()["ball"]
        sim.run(1)
        force = (before + sim.forces()["ball"]) / 2
    rows = (tmp_path / "forces_ball.csv").read_text().splitlines()
    assert [float(value) for value in rows[1].split(",")[2:4]] == first.tolist()
    assert [float(value) for value in rows[-1].split(",")[2:4]] == force.tolist()
    with (
        simulation(cavity(body=[BALL])) as sim,
        pytest.raises(mpilbm.UsageError, match="forces: the case weighs no body; add"),
    ):
        sim.forces()


def test_time_is_in_steps_or_in_seconds():
    with simulation(cavity()) as sim:
        sim.run(3)
        assert sim.time == 3
    units = {"cell": 0.001, "step": 5e-5, "density": 998}
    with simulation(cavity(units=units)) as sim:
        sim.run(3)
        assert sim.time == pytest.approx(1.5e-4)


# Files, restart and the end


def test_a_checkpoint_continues_with_the_same_bits(tmp_path):
    with simulation(cavity()) as sim:
        sim.run(7)
        sim.checkpoint(tmp_path / "state.h5")
        sim.run(8)
        u = sim.field("u")
    with simulation(cavity(), restart=tmp_path / "state.h5") as sim:
        assert sim.step == 7
        assert "continuing from step 7" in sim.messages
        sim.run(8)
        assert np.array_equal(sim.field("u"), u)


def test_restart_auto_continues_the_folder(tmp_path):
    with simulation(flow(), directory=tmp_path) as sim:
        sim.run(10)
    with simulation(flow(), directory=tmp_path, restart="auto") as sim:
        assert sim.step == 10
        sim.run()
    with pytest.raises(mpilbm.UsageError, match='restart = "auto" takes the newest checkpoint of'):
        simulation(flow(), restart="auto")
    with pytest.raises(mpilbm.CommandError, match="there is no such file"):
        simulation(flow(), restart=tmp_path / "gone.h5")


def test_the_folder_of_another_run_is_protected(tmp_path):
    with simulation(flow(5), directory=tmp_path) as sim:
        sim.run()
    with pytest.raises(mpilbm.CommandError, match="holds the files of an earlier run"):
        simulation(flow(5), directory=tmp_path)
    with simulation(flow(5), directory=tmp_path, overwrite=True) as sim:
        sim.run()


def test_a_file_needs_a_folder(tmp_path):
    with simulation(cavity()) as sim:
        with pytest.raises(
            mpilbm.UsageError, match=r"save '.*gone/a\.vtkhdf': its folder does not"
        ):
            sim.save(tmp_path / "gone" / "a.vtkhdf")
        with pytest.raises(mpilbm.UsageError, match=r"checkpoint '.*': is a folder; add a file"):
            sim.checkpoint(tmp_path)


def test_after_the_end_calls_are_refused_but_the_step_is_known():
    sim = simulation(cavity())
    sim.run(2)
    sim.close()
    sim.close()
    assert (sim.step, sim.time, sim.case.title) == (2, 2.0, "")
    for call in (
        sim.run,
        sim.sums,
        sim.forces,
        lambda: sim.field("u"),
        lambda: sim.march,
        lambda: sim.save("a"),
        lambda: sim.set_field("u", 0),
        lambda: sim.planes,
    ):
        with pytest.raises(mpilbm.UsageError, match="this simulation is closed; create another"):
            call()


def test_an_error_of_the_program_releases_the_folder(tmp_path):
    with pytest.raises(ZeroDivisionError), simulation(flow(), directory=tmp_path) as sim:
        sim.run(3, call=lambda sim: 1 / 0)
    assert summary(tmp_path)["status"] == "failed"
    with simulation(flow(), directory=tmp_path, overwrite=True) as sim:
        sim.run()


def test_two_simulations_at_the_same_time():
    with simulation(cavity()) as one, simulation(cavity(layout={"name": "aa"})) as two:
        for _ in range(3):
            one.run(2)
            two.run(2)
        assert np.allclose(one.field("u"), two.field("u"), atol=1e-7)


def test_all_arrays_are_freed(monkeypatch, tmp_path):
    arrays, allocate = [], CpuDevice.allocate

    def noted(device, count, dtype):
        array = allocate(device, count, dtype)
        arrays.append(weakref.ref(array.base))
        return array

    monkeypatch.setattr(CpuDevice, "allocate", noted)
    gc.collect()
    gc.disable()
    try:
        with simulation(flow(), directory=tmp_path) as sim:
            sim.run(15, every=5, call=lambda sim: sim.field("vorticity"))
            sim.set_field("rho", np.ones((6, 7)))
        assert len(arrays) > 3
        assert not any(array() is not None for array in arrays)
        assert sim.step == 15
    finally:
        gc.enable()


PUBLIC = """
import sys, mpilbm
assert not {"numpy", "pydantic", "mpi4py"} & set(sys.modules), "import mpilbm is slow"
for name in mpilbm.__all__:
    assert getattr(mpilbm, name).__doc__, name
assert set(mpilbm.__all__) <= set(dir(mpilbm))
try:
    mpilbm.simulation
except AttributeError as error:
    print(error)
"""


def test_public_names_are_imported_when_they_are_used():
    done = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True)
    assert done.stdout == "module 'mpilbm' has no attribute 'simulation'\n", done.stderr

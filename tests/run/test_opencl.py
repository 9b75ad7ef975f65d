"""A run with OpenCL: outputs and functions of Python as on a CPU; what has no device arrays.

More than 20 s: PoCL compiles the kernels of all outputs.
"""

from pathlib import Path

import h5py
import numpy as np
import pytest
from support.commands import CASE, call, refused
from support.mpirun import with_mpirun
from support.user_runs import assert_reported, in_turn, sets

import mpilbm
from mpilbm.backends.opencl import OpenclDevice, devices
from mpilbm.case.case import load_case, parse_case
from mpilbm.core.errors import CaseError, UsageError
from mpilbm.parallel.ranks import Serial

try:
    found = devices.devices()
except CaseError:
    pytest.skip("no OpenCL device", allow_module_level=True)

EXACT = devices.rounds_correctly(found[0])
USE = ("backend.name='opencl'",)
CHANNEL = {
    "lattice": {"name": "D3Q19"},
    "domain": {"size": [9, 6, 8], "periodic": [False, False, True]},
    "fluid": {"viscosity": 0.05},
    "force": {"name": "guo", "value": [1e-5, 0, "1e-6*sin(0.1*t)"]},
    "boundary": [
        {"name": "copy", "where": ["x+"], "rho": 1},
        {"name": "bounce_back", "where": ["y-"]},
        {"name": "bounce_back", "where": ["y+"], "velocity": ["0.01*cos(0.2*t)", 0, 0]},
    ],
    "body": [
        {
            "label": "ball",
            "shape": {"name": "sphere", "centre": [4.2, 3, 4], "radius": 1.6},
            "boundary": {"name": "interpolated"},
        }
    ],
    "run": {"steps": 12, "steady": {"tolerance": 1e-12, "every": 4}},
    "output": [
        {"name": "snapshot", "every": 4, "fields": ["rho", "u", "vorticity", "q_criterion"]},
        {"name": "snapshot", "label": "part", "every": 4, "stride": 2},
        {"name": "body_forces", "every": 2, "split": True},
        {"name": "statistics", "every": 1, "average": ["x", "z"]},
        {"name": "statistics", "every": 1, "average": []},
        {"name": "higher_moments", "every": 2, "average": ["x", "z"], "label": "xz"},
        {"name": "checkpoint", "every": 6},
        {"name": "probe", "label": "p", "every": 2, "points": [[1.5, 1.5, 1.5]]},
        {"name": "plane", "label": "p", "normal": "z", "position": 3.5, "every": 4},
        {"name": "line", "label": "l", "from": [1, 1, 1], "to": [8, 1, 1], "every": 4},
        {"name": "box", "label": "b", "from": [0, 0, 0], "to": [4, 4, 4], "every": 4},
        {"name": "surface", "every": 4},
    ],
}


def inflow(x, y, z, t):
    return 0.02 * y * (6 - y) / 9 * (1 + 0.1 * np.sin(0.3 * t))


def channel(**backend):
    inlet = {"name": "regularized", "where": ["x-"], "velocity": [inflow, 0, 0]}
    boundary = [inlet, *CHANNEL["boundary"]]
    return parse_case(CHANNEL | {"boundary": boundary, "backend": backend}, "channel.toml")


def contents(folder: Path) -> dict:
    """All values in the files of a run, without provenance and times."""
    values = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".csv":
            values[path.name] = path.read_bytes()
        elif path.suffix in (".h5", ".vtkhdf"):
            with h5py.File(path) as file:
                file.visititems(
                    lambda name, item, path=path: values.update(
                        {(path.name, name): item[...].tobytes()}
                        if isinstance(item, h5py.Dataset) and "mpilbm" not in name
                        else {}
                    )
                )
    return values


@pytest.fixture
def unoptimised(monkeypatch):
    """The compiler of the device does not optimise, as for kernels in C (conftest.py)."""
    original = OpenclDevice.__init__

    def start(device, *given):
        original(device, *given)
        device._options.append("-cl-opt-disable")

    monkeypatch.setattr(OpenclDevice, "__init__", start)


@pytest.mark.skipif(not EXACT, reason="the device rounds divisions inexactly")
def test_outputs_and_functions_have_the_values_of_a_cpu(tmp_path, unoptimised):
    results = {}
    for name, more in (("cpu", {}), ("opencl", {"fused": False})):
        folder = tmp_path / name
        with mpilbm.Simulation(channel(name=name, **more), Serial(), directory=folder) as sim:
            sim.run(6)
            sim.set_field("u", lambda x, y, z: (0.01, 0 * x, 0.002 * np.sin(y)))
            sums, forces = sim.sums(), sim.forces()["ball"].tolist()
            sim.run()
            results[name] = sums, forces, sim.field("u").tobytes(), contents(folder)
    assert len(results["cpu"][-1]) > 40
    assert results["opencl"] == results["cpu"]


@pytest.fixture
def box(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("box.toml").write_text(CASE)
    return "box.toml"


def test_arrays_of_the_device_are_refused(box):
    with (
        mpilbm.Simulation(load_case(box, USE), Serial()) as sim,
        pytest.raises(UsageError, match=r"opencl has no arrays for NumPy functions; use field\(\)"),
    ):
        sim.device_field("u")


def test_a_box_larger_than_the_device_is_refused(box):
    huge = sets([*USE, "domain.size=[400000, 400000]", "output=[]"])
    assert "problem: box.toml: domain.size: a rank needs" in refused("check", box, *huge)
    (line,) = refused("run", box, *huge).splitlines()
    assert "(OpenCL) has" in line
    assert "choose a smaller domain.size" in line
    assert list(Path.cwd().iterdir()) == [Path.cwd() / box]


def test_comparisons_and_pages_of_a_run(box, monkeypatch):
    monkeypatch.setattr(OpenclDevice, "memory", lambda self: (2**28, 2**30))  # copies less
    result = call("run", box, *sets(USE))
    assert result.exit_code == 0, result.output
    assert "(OpenCL)" in result.output
    for verb in ("report", "plot"):
        result = call(verb, "box.out")
        assert result.exit_code == 0, result.output
    result = call("bench", box, "--steps", "5", *sets([*USE, "output=[]"]))
    assert result.exit_code == 0, result.output
    assert "(OpenCL)" in result.output


WAYS = {
    "direct": '"direct" needs arrays with an address, opencl has none; set .*"staged" or "auto"',
    "nccl": "'nccl' sends from GPU to GPU, and opencl has no CUDA streams; use 'auto' or 'st",
    "cuda_ipc": "'cuda_ipc' sends from GPU to GPU, and opencl has no CUDA streams; use 'auto'",
}


@with_mpirun
def test_ways_that_need_an_address_are_refused(box):
    options = [sets([*USE, f"halo.name='{halo}'"]) for halo in WAYS]
    for sentence, (codes, output) in zip(WAYS.values(), in_turn(2, *options), strict=True):
        assert codes == [2, 2]
        assert_reported(2, output, 2, f"halo.name: {sentence}")

"""jobs/permeability.sh and tools/permeability_tensor: the tensor of a small anisotropic rock."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support import ROOT

TOOL = ROOT / "tools" / "permeability_tensor"
CASE = """
title = "Inclined tubes"
[lattice]
name = "D3Q19"
[domain]
size = [6, 6, 4]
periodic = [true, true, true]
[fluid]
viscosity = 0.2
[collision]
name = "trt"
[precision]
compute = "float64"
storage = "float64"
[force]
name = "guo"
value = [1e-6, 0, 0]
[[body]]
label = "rock"
mask = "rock.npy"
boundary = {name = "bounce_back"}
[run]
steps = 300
[backend]
name = "cpu"
[[output]]
name = "permeability"
every = 300
voxel = "2 um"
"""
SRUN = '#!/bin/bash\nshift\nexec "$PYTHON" -m mpilbm "$@"\n'


def tool(*folders):
    words = [sys.executable, TOOL, *folders]
    return subprocess.run(words, capture_output=True, text=True, timeout=200)


def write(folder, header, *rows):
    folder.mkdir()
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
    (folder / "permeability.csv").write_text(text + "\n")


def test_three_jobs_give_a_symmetric_tensor(tmp_path):
    """Of a channel along x + y, 2 cells high, with a narrow part."""
    z, y, x = np.indices((4, 6, 6))
    solid = ((x - y) % 6 > 3) & (z > 0) | (z == 3)
    np.save(tmp_path / "rock.npy", solid)
    (tmp_path / "rock.toml").write_text(CASE)
    (tmp_path / "bin").mkdir()
    srun = tmp_path / "bin" / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    for number in range(3):
        own = {"SLURM_ARRAY_TASK_ID": str(number), "CASE": "rock.toml", "VENV": str(tmp_path)}
        own |= {"FORCE": "1e-6", "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
        command = ["bash", ROOT / "jobs" / "permeability.sh"]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | own, capture_output=True,
                              text=True, timeout=200)  # fmt: skip
        assert done.returncode == 0, done.stderr
    folders = [tmp_path / f"rock_{axis}.out" for axis in "zxy"]
    done = tool(*folders, "--json", tmp_path / "k.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "k.json").read_text())
    k = np.array(found["cells^2"])
    assert k == pytest.approx(k.T, rel=1e-6, abs=1e-6)
    assert k[0, 1] > 0.1 * k[0, 0] > 0
    assert np.array(found["m^2"]) == pytest.approx(k * 4e-12)
    assert found["principal"] == sorted(found["principal"], reverse=True)
    assert "k (mD)" in done.stdout


HEADER = "step,time,k_x,k_y,u_x,u_y"


def test_columns_of_the_tensor(tmp_path):
    """k_ij = k_jj u_i / u_j."""
    write(tmp_path / "x", HEADER, (0, 0, 0, "nan", 0, 0), (9, 9, 2.0, "nan", 0.4, 0.1))
    write(tmp_path / "y", HEADER, (9, 9, "nan", 3.0, 0.1, 0.6))
    done = tool(tmp_path / "y", tmp_path / "x", "--json", tmp_path / "k.json")
    found = json.loads((tmp_path / "k.json").read_text())
    assert np.array(found["cells^2"]) == pytest.approx(np.array([[2, 0.5], [0.5, 3]]))
    assert found["asymmetry"] == pytest.approx(0, abs=1e-12)
    assert found["principal"] == pytest.approx([2.5 + 0.5**0.5, 2.5 - 0.5**0.5])
    assert "m^2" not in found
    assert "k (cells^2)" in done.stdout


def test_wrong_runs(tmp_path):
    write(tmp_path / "x", HEADER, (9, 9, 2.0, "nan", 0.4, 0.1))
    write(tmp_path / "still", HEADER, (0, 0, 0, "nan", 0, 0))
    write(tmp_path / "empty", HEADER)
    for folders, words in (
        (["x"], "no run is driven along y; allowed: one run along each of x, y"),
        (["x", "x"], "a second run along x"),
        (["still"], "run more steps"),
        (["empty"], "the last row is missing"),
        (["nowhere"], "name the folders of runs"),
    ):
        done = tool(*(tmp_path / name for name in folders))
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr

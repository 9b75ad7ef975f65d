"""tools/gpu_series and tools/restarts: their parts, limits of time and comparisons."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import h5py
import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def load(name: str, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    loader = SourceFileLoader(name, str(TOOLS / name))
    found = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("gpus", "fewer", "ranks"), [(2, [], "2,1,4"), (4, [2], "4,2,8"), (8, [4, 2], "4,2,8")]
)
def test_parts(gpus, fewer, ranks, monkeypatch):
    """All are named, write files of their own, and exist."""
    tool = load("gpu_series", monkeypatch)
    found = list(tool.parts(gpus, "h100", "cuda", 1, "mpirun"))
    assert list(dict.fromkeys(part.name for part in found)) == [
        name for name in tool.PARTS if fewer or name != "fewer"
    ]
    assert len({part.file for part in found}) == len(found)
    assert [part.ranks for part in found if part.name == "fewer"] == fewer
    assert next(part.words[-1] for part in found if part.name == "restarts") == ranks
    for part in found:
        assert part.words[0] == "-P" or Path(part.words[0]).exists()


def test_a_part_ends_at_its_limit(monkeypatch, tmp_path):
    """Also its children, which have no time to end by themselves."""
    tool = load("gpu_series", monkeypatch)
    sleeps = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    child = f"import subprocess, sys; subprocess.run({sleeps})"
    part = tool.Part("flows", 0, ["-c", child], 60, "x.json")
    code, seconds = tool.seconds_of(part, [], tmp_path / "x.json", 0.5)
    assert code == 124
    assert seconds < 30
    failing = part._replace(words=["-c", "raise SystemExit(3)"])
    assert tool.seconds_of(failing, [], tmp_path / "x.json", 30)[0] == 3


def test_values_that_differ_are_counted(monkeypatch, tmp_path):
    """One bit of a value, -0.0 for 0.0, a missing data set, and rows of a table but the speed."""
    tool = load("restarts", monkeypatch)
    paths = [tmp_path / f"{name}.h5" for name in ("one", "same", "other")]
    for path in paths:
        with h5py.File(path, "w") as file:
            file["fluid/f"] = np.arange(12.0).reshape(3, 4)
            file["sums"] = np.zeros(5)
    assert tool.different(*paths[:2]) == (0, 17)
    with h5py.File(paths[2], "r+") as file:
        file["fluid/f"][1, 2] = np.nextafter(6.0, 7)
        file["sums"][0] = -0.0
    assert tool.different(paths[0], paths[2])[0] >= 2
    with h5py.File(paths[2], "r+") as file:
        file["fluid/f"][...] = np.arange(12.0).reshape(3, 4)
        del file["sums"]
    assert tool.different(paths[0], paths[2]) == (5, 17)
    assert tool.different(paths[0], tmp_path / "none.h5")[0] == 17
    tables = [tmp_path / f"{k}.csv" for k in range(3)]
    for path, row in zip(tables, ("1,0.5,3", "1,0.5,4", "1,0.25,3"), strict=True):
        path.write_text(f"step,rho,glups\n0,1,2\n{row}\n")
    assert tool.different(*tables[:2]) == (0, 4)
    assert tool.different(tables[0], tables[2])[0] > 0


def test_a_run_that_fails_is_reported(monkeypatch, tmp_path):
    tool = load("restarts", monkeypatch)
    words = [sys.executable, "-c", "raise SystemExit('no such launcher')"]
    said = tool.run(words, 2, tmp_path / "case.toml", "whole", 3)
    assert said == "2 ranks: exit code 1: no such launcher"

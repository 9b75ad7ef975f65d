"""The shell scripts: bash reads them, shellcheck (where installed) finds nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    "tools/environment.sh",
    "tools/demo",
    "tools/test",
    ".ci/run",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("jobs/*.sh")),
]


def checked(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("script", SCRIPTS)
def test_bash_reads_the_script(script):
    done = checked("bash", "-n", script)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script):
    done = checked("shellcheck", "-x", script)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", [name for name in SCRIPTS if name != "tools/environment.sh"])
def test_the_script_may_be_run(script):
    assert os.access(ROOT / script, os.X_OK)


def job(tmp_path, exit_code, **variables):
    """Run jobs/one_node.sh with a stand-in srun and scontrol; returns exit code and calls."""
    calls = tmp_path / "calls"
    for name, code in {"srun": exit_code, "scontrol": 0}.items():
        stand_in = tmp_path / name
        stand_in.write_text(f'#!/bin/bash\necho {name} "$@" >>"{calls}"\nexit {code}\n')
        stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    environment |= {"SLURM_JOB_ID": "17", "VENV": str(tmp_path / "venv"), **variables}
    done = subprocess.run(
        ["bash", ROOT / "jobs/one_node.sh"], env=environment, cwd=tmp_path, timeout=60
    )
    return done.returncode, calls.read_text().splitlines()


def test_the_job_runs_its_case_and_restarts(tmp_path):
    code, calls = job(tmp_path, 0, CASE="a/pipe.toml")
    assert code == 0
    assert calls == ["srun mpilbm run a/pipe.toml --output pipe.out --restart auto"]


@pytest.mark.parametrize(
    ("exit_code", "chain", "again"),
    [(0, "1", False), (3, "1", False), (4, "0", False), (4, "1", True)],
)
def test_the_job_queues_itself_again_only_when_stopped_early(tmp_path, exit_code, chain, again):
    code, calls = job(tmp_path, exit_code, CHAIN=chain)
    assert code == exit_code
    assert ("scontrol requeue 17" in calls) == again

"""jobs/*.sh in a real SLURM of two nodes: `.ci/slurm python -m pytest tests/slurm`.

Small cases on CPUs; ranks and nodes are given to sbatch on the command line.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT

pytestmark = pytest.mark.skipif(
    not os.environ.get("MPILBM_TEST_SLURM"), reason="runs in .ci/slurm, which starts a SLURM"
)
SECONDS = 120  # for anything that a job is waited for
CASE = """
[lattice]
name = "D2Q9"
[domain]
size = [16, 12]
periodic = [true, true]
[fluid]
viscosity = 0.1
[run]
steps = {steps}
[backend]
name = "cpu"
[[output]]
name = "checkpoint"
every = 1000000000
"""
ENDLESS = 10**9
ONE_NODE = ("--nodes=1", "--ntasks-per-node=2", "--gpus-per-node=2")
TWO_NODES = ("--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=1")
# What a job runs as `mpilbm`: notes the visible GPUs and the process of each rank.
MPILBM = """#!/bin/bash
echo "$SLURMD_NODENAME ${{CUDA_VISIBLE_DEVICES-all}} $$" >"$NOTES/rank.$PMI_RANK"
{more}
exec {python} -m mpilbm "$@"
"""
LATE = """trap : USR1
{python} -m mpilbm "$@"
code=$?
sleep "$((2 * PMI_RANK))"
exit "$code"
"""


def command(*words) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(condition, what):
    """Wait for a condition; what it returns."""
    end = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, f"{what() if callable(what) else what}: not in {SECONDS} s"
        time.sleep(0.1)
    return found


class Job:
    """A job script that was submitted in `folder`."""

    def __init__(self, folder, script, *options, **variables):
        self.folder, self.started = folder, time.monotonic()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_J")}
        own = {"VENV": str(folder / "venv"), "CASE": "small.toml", "NOTES": str(folder)}
        own |= {"PYTHONPATH": str(ROOT), "MPIRUN": str(Path(sys.executable).with_name("mpirun"))}
        words = ["sbatch", "--parsable", "--output=log.txt", *options, ROOT / "jobs" / script]
        done = subprocess.run(
            words, cwd=folder, env=kept | own | variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self.number = done.stdout.strip()
        (folder / f"job.{self.number}").touch()

    def facts(self) -> dict:
        """What `scontrol show job` reports."""
        text = command("scontrol", "show", "job", "-o", self.number).splitlines()[0]
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def log(self) -> str:
        return (self.folder / "log.txt").read_text() if (self.folder / "log.txt").exists() else ""

    def end(self) -> tuple[str, int]:
        """State and exit code of the job, once it has ended."""

        def ended():
            found = self.facts()
            over = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
            return found if found["JobState"] in over else None

        found = until(ended, self.log)
        return found["JobState"], int(found["ExitCode"].split(":")[0])

    def steps(self) -> None:
        """Wait until the run steps."""
        until(lambda: "step " in self.log() and "GLUPS" in self.log(), self.log)

    def signal(self, *options) -> None:
        """What SLURM sends before the time limit."""
        command("scancel", "--signal=USR1", *options, self.number)

    def rank(self, number: int) -> list[str]:
        """Node, visible GPUs and process of a rank."""
        return (self.folder / f"rank.{number}").read_text().split()


@pytest.fixture
def folder(tmp_path):
    """A folder with an endless case and the environment that a job uses."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    mpilbm(tmp_path)
    case(tmp_path, ENDLESS)
    yield tmp_path
    for job in tmp_path.glob("job.*"):  # those that a test which failed has left
        subprocess.run(["scancel", "--quiet", "--full", "--signal=KILL", job.suffix[1:]])
        subprocess.run(["scancel", "--quiet", job.suffix[1:]])


def mpilbm(folder, more=""):
    """The program that a job runs."""
    program = folder / "venv" / "bin" / "mpilbm"
    more = more.format(python=sys.executable)
    program.write_text(MPILBM.format(more=more, python=sys.executable))
    program.chmod(0o755)


def case(folder, steps):
    (folder / "small.toml").write_text(CASE.format(steps=steps))


def summary(folder) -> dict:
    return json.loads((folder / "small.out" / "summary.json").read_text())


@pytest.mark.parametrize(
    ("script", "options", "to"),
    [("one_gpu.sh", (), ()), ("one_node.sh", ONE_NODE, ()), ("many_nodes.sh", TWO_NODES, ()),
     ("mpirun_nodes.sh", TWO_NODES, ("--batch",))],
)  # fmt: skip
def test_a_signal_stops_a_run_and_the_next_job_continues(folder, script, options, to):
    first = Job(folder, script, *options)
    first.steps()
    first.signal(*to)
    assert first.end() == ("FAILED", 4), first.log()
    stopped = summary(folder)
    assert (stopped["status"], stopped["ranks"]) == ("stopped", 2 if options else 1)
    if script == "one_node.sh":  # no rank sees its own GPU alone
        assert {first.rank(k)[1] for k in range(2)} <= {"all", "0,1"}
    if script == "many_nodes.sh":
        assert [first.rank(k)[0] for k in range(2)] == ["node1", "node2"]
    case(folder, stopped["steps"] + 5)
    second = Job(folder, script, *options)
    assert second.end() == ("COMPLETED", 0), second.log()
    assert f"from step {stopped['steps']}" in second.log()
    assert summary(folder)["status"] == "done"


def test_the_exit_code_says_stopped_where_ranks_end_one_after_another(folder):
    """As on GPUs, whose memory takes a while to be given back."""
    mpilbm(folder, LATE)
    job = Job(folder, "one_node.sh", *ONE_NODE)
    job.steps()
    job.signal()
    assert job.end() == ("FAILED", 4), job.log()


def test_a_killed_rank_ends_the_job(folder):
    job = Job(folder, "many_nodes.sh", *TWO_NODES)
    job.steps()
    os.kill(int(job.rank(1)[2]), signal.SIGKILL)
    assert job.end() == ("FAILED", 137), job.log()


def test_a_run_stops_before_the_time_limit(folder):
    """SLURM sends the signal 20 to 50 s after the start: it looks every 30 s."""
    job = Job(folder, "one_node.sh", *ONE_NODE, "--time=1", "--signal=USR1@10")
    job.steps()
    assert job.end() == ("FAILED", 4), job.log()
    assert summary(folder)["status"] == "stopped"
    assert time.monotonic() - job.started > 10


def requeued(job) -> None:
    """Wait until a job is in the queue again, and let it start soon, not after two minutes.

    Within the same second the node would still refuse it: its credential has been revoked.
    """

    def pending():
        found = job.facts()
        return found["JobState"] == "PENDING" and found["Restarts"] == "1"

    until(pending, "requeued")
    command("scontrol", "update", f"JobId={job.number}", "StartTime=now+3")


def test_a_chain_requeues_itself_and_continues_to_the_end(folder):
    job = Job(folder, "chain.sh", *ONE_NODE)
    job.steps()
    job.signal()
    until(lambda: job.facts()["JobState"] in ("PENDING", "COMPLETING"), "requeued")
    stopped = summary(folder)
    assert stopped["status"] == "stopped"
    case(folder, stopped["steps"] + 5)
    requeued(job)
    assert job.end() == ("COMPLETED", 0), job.log()
    assert f"from step {stopped['steps']}" in job.log()
    assert job.facts()["Restarts"] == "1"
    found = summary(folder)
    assert (found["status"], found["steps"]) == ("done", stopped["steps"] + 5)


def test_a_job_that_is_preempted_continues(folder):
    """SLURM ends it by SIGTERM, gives it some seconds, and starts it again later."""
    job = Job(folder, "many_nodes.sh", *TWO_NODES)
    job.steps()
    command("scontrol", "requeue", job.number)
    until(lambda: job.facts()["JobState"] == "PENDING", "requeued")
    stopped = summary(folder)
    assert stopped["status"] == "stopped", job.log()
    case(folder, stopped["steps"] + 5)
    requeued(job)
    assert job.end() == ("COMPLETED", 0), job.log()
    assert f"from step {stopped['steps']}" in job.log()


def test_an_array_runs_a_case_for_each_value(folder):
    case(folder, 10)
    values = {"KEY": "fluid.viscosity", "VALUES": "0.1 0.2"}
    job = Job(folder, "array.sh", "--array=0-1", **values)
    for number in range(2):
        file = folder / f"small_{number}.out" / "summary.json"
        until(lambda file=file: file.exists() and '"done"' in file.read_text(), job.log)


def test_a_series_measures_and_reports(folder):
    options = {"SCALING": "weak", "SIZE": "16x12", "RANKS": "1 2"}
    options["OPTIONS"] = "--lattice D2Q9 --steps 2 --backend cpu"
    job = Job(folder, "series.sh", *TWO_NODES, **options)
    assert job.end() == ("COMPLETED", 0), job.log()
    for ranks in (1, 2):
        file = folder / f"scaling_weak/weak_16x12_{ranks}ranks_{job.number}.json"
        assert json.loads(file.read_text())["ranks"] == ranks
    assert "<details>" in (folder / "scaling_weak/scaling.html").read_text()

"""The shell scripts: bash reads them, shellcheck (where installed) finds nothing, jobs run.

More than 20 s: jobs start the command, some of them on two ranks.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT
from support.commands import CASE
from support.mpirun import with_mpirun

JOBS = sorted(path.name for path in ROOT.glob("jobs/*.sh"))
SERIES, CPUS = "series.sh", "cpu_nodes.sh"
SCRIPTS = [
    "tools/environment.sh",
    "tools/demo",
    "tools/parts.sh",
    "tools/test",
    ".ci/bare",
    ".ci/run",
    ".ci/slurm",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("jobs/*.sh")),
]


def checked(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("script", SCRIPTS)
def test_bash_reads_the_script(script):
    done = checked("bash", "-n", script)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script):
    done = checked("shellcheck", "-x", script)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", [name for name in SCRIPTS if not re.match("tools/.*sh", name)])
def test_the_script_may_be_run(script):
    assert os.access(ROOT / script, os.X_OK)


# ------------------------------------------------------------- what SLURM reads of a job script


def directives(name) -> dict:
    """The options in a script, in front of its first command, as sbatch reads them."""
    lines = (ROOT / "jobs" / name).read_text().split("\n\n")[0].splitlines()
    found = (line.split()[1].partition("=") for line in lines if line.startswith("#SBATCH"))
    return {option.removeprefix("--"): value for option, _, value in found}


@pytest.mark.parametrize("name", [name for name in JOBS if name != CPUS])
def test_a_job_has_one_rank_for_each_gpu_and_sees_all_gpus(name):
    found = directives(name)
    assert found["gpus-per-node"] == found["ntasks-per-node"]
    assert {"nodes", "time", "job-name"} <= found.keys()
    started_by_srun = name != "mpirun_nodes.sh"
    assert ("gpu-bind" in found) == (found["gpus-per-node"] != "1" and started_by_srun)
    assert found.get("gpu-bind", "none") == "none"


@pytest.mark.parametrize("name", [name for name in JOBS if name != SERIES])
def test_a_run_gets_a_signal_before_the_limit_and_appends_to_its_log(name):
    found = directives(name)
    assert "requeue" in found
    to_script = "B:" if name == "mpirun_nodes.sh" else ""
    assert found["signal"] == f"{to_script}USR1@600"
    assert found["open-mode"] == "append"


# ------------------------------------------------------------------------------ stand-ins

SBATCH = """#!/bin/bash
# sbatch SCRIPT: runs a copy from elsewhere, once for each number of an array, again if queued.
option() { sed -n "s/^#SBATCH --$1=//p" "$2"; }
cp "$1" "$SPOOL/slurm_script"
export SLURM_JOB_ID=17 SLURM_RESTART_COUNT=0
SLURM_NTASKS_PER_NODE=$(option ntasks-per-node "$1")
export SLURM_NTASKS_PER_NODE SLURM_NTASKS=$((SLURM_NTASKS_PER_NODE * $(option nodes "$1")))
array=$(option array "$1")
for SLURM_ARRAY_TASK_ID in $(seq ${array/-/ } 2>/dev/null || echo 0); do
    export SLURM_ARRAY_TASK_ID
    code=0
    bash "$SPOOL/slurm_script" || code=$?
    while [[ -e $SPOOL/queued ]]; do
        rm "$SPOOL/queued"
        ((SLURM_RESTART_COUNT += 1))
        code=0
        bash "$SPOOL/slurm_script" || code=$?
    done
    ((code == 0)) || exit "$code"
done
"""
SRUN = """#!/bin/bash
# srun OPTIONS COMMAND: as many ranks as asked for, but MOST at most; the first one in a job of
# which $SPOOL/limit names a file gets the signal of its time limit when that file exists.
echo "srun $*" >>"$SPOOL/calls"
ranks=$SLURM_NTASKS
while [[ $1 == --* ]]; do
    [[ $1 != --ntasks=* ]] || ranks=${1#*=}
    shift
done
((ranks <= MOST)) || ranks=$MOST
if [[ -e $SPOOL/code ]]; then
    if [[ -e $SPOOL/progress ]]; then # a checkpoint of a later step each time
        mkdir -p small.out
        touch "small.out/checkpoint_$(wc -l <"$SPOOL/calls").h5"
    fi
    exit "$(<"$SPOOL/code")"
fi
if [[ -e $SPOOL/limit ]]; then
    file=$(<"$SPOOL/limit")
    rm "$SPOOL/limit"
    "$@" &
    until [[ -e $file ]]; do sleep 0.05; done
    kill -USR1 $!
    wait $!
elif ((ranks > 1)); then
    exec mpirun -n "$ranks" "$@"
else
    exec "$@"
fi
"""
SCONTROL = """#!/bin/bash
# scontrol requeue JOB
echo "scontrol $*" >>"$SPOOL/calls"
touch "$SPOOL/queued"
"""
MPILBM = f"""#!/bin/bash
exec {sys.executable} -m mpilbm "$@"
"""


@pytest.fixture
def slurm(tmp_path):
    """A folder with a case, and an environment in which jobs find stand-ins for SLURM."""
    programs, spool = tmp_path / "venv" / "bin", tmp_path / "spool"
    programs.mkdir(parents=True)
    spool.mkdir()
    texts = {"sbatch": SBATCH, "srun": SRUN, "scontrol": SCONTROL, "mpilbm": MPILBM}
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    more = '\n[backend]\nname = "cpu"\n[[output]]\nname = "checkpoint"\nevery = 10000\n'
    (tmp_path / "small.toml").write_text(CASE + more)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "SPOOL": str(spool), "MOST": "2"}
    return tmp_path, kept | own | {"VENV": str(programs.parent), "CASE": "small.toml"}


def submit(slurm, name, **variables):
    """Exit code and output of `sbatch jobs/NAME`, and what was called."""
    folder, environment = slurm
    done = subprocess.run(
        [folder / "venv/bin/sbatch", ROOT / "jobs" / name], env=environment | variables,
        cwd=folder, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    calls = folder / "spool" / "calls"
    called = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, done.stdout + done.stderr, called


def summary(folder) -> dict:
    return json.loads((folder / "summary.json").read_text())


def starts(name) -> str:
    """How a job script starts its case."""
    options = "" if name == "one_gpu.sh" else "--kill-on-bad-exit=0 --wait=30 "
    return f"srun {options}mpilbm run small.toml --output small.out --restart auto"


@with_mpirun
@pytest.mark.parametrize("name", ["one_gpu.sh", "many_nodes.sh"])
def test_a_job_runs_its_case(slurm, name):
    code, said, called = submit(slurm, name)
    assert code == 0, said
    assert called == [starts(name)]
    found = summary(slurm[0] / "small.out")
    assert found["status"] == "done"
    assert found["ranks"] == (1 if name == "one_gpu.sh" else 2)


@pytest.mark.parametrize("name", ["one_node.sh", "chain.sh"])
def test_other_jobs_start_their_case_in_the_same_way(slurm, name):
    (slurm[0] / "spool" / "code").write_text("0")
    code, said, called = submit(slurm, name)
    assert code == 0, said
    assert called == [starts(name)]


@with_mpirun
def test_a_job_on_cpus_gives_its_ranks_threads(slurm):
    assert "gpus-per-node" not in directives(CPUS)
    assert int(directives(CPUS)["cpus-per-task"]) > 1
    code, said, called = submit(slurm, CPUS, SLURM_CPUS_PER_TASK="2")
    assert code == 0, said
    (call,) = called
    assert call.startswith("srun --cpus-per-task=2 ")
    assert "--cpu-bind" not in call  # srun would ignore --hint
    assert "--set backend.name='cpu' --set backend.threads=2 " in call
    found = summary(slurm[0] / "small.out")
    assert (found["status"], found["ranks"]) == ("done", 2)
    assert ", 2 threads per rank, " in found["device"]


@pytest.mark.parametrize("name", ["one_gpu.sh", "many_nodes.sh"])
def test_a_job_ends_as_its_run_ended(slurm, name):
    (slurm[0] / "spool" / "code").write_text("3")
    assert submit(slurm, name, OUTPUT="elsewhere")[0] == 3


def test_an_array_runs_a_case_for_each_value(slurm):
    values = {"KEY": "fluid.reynolds", "VALUES": "10 20 30 40"}
    (slurm[0] / "spool" / "code").write_text("0")
    code, said, called = submit(slurm, "array.sh", **values)
    assert code == 0, said
    assert called == [
        f"srun mpilbm run small.toml --set fluid.reynolds={value} --output small_{k}.out "
        "--restart auto"
        for k, value in enumerate((10, 20, 30, 40))
    ]


def test_an_array_of_more_numbers_than_values_says_so(slurm):
    code, said, called = submit(slurm, "array.sh", VALUES="10")
    assert code != 0
    assert "VALUES has too few entries" in said
    assert len(called) == 1
    assert summary(slurm[0] / "small_0.out")["status"] == "done"


LONG = CASE.replace("steps = 10", "steps = 40000").replace("every = 5", "every = 40000\nbegin = 0")


def test_a_chain_goes_on_until_all_steps_are_done(slurm):
    """The first job of the chain gets the signal of its time limit once it steps."""
    folder = slurm[0]
    case = folder / "small.toml"
    case.write_text(case.read_text().replace(CASE, LONG))
    (folder / "spool" / "limit").write_text("small.out/snapshot_000000000.vtkhdf")
    code, said, called = submit(slurm, "chain.sh", MOST="1")
    assert code == 0, said
    assert [call.split()[0] for call in called] == ["srun", "scontrol", "srun"]
    assert called[1] == "scontrol requeue 17"
    assert "continuing from step" in said
    found = summary(folder / "small.out")
    assert (found["status"], found["steps"]) == ("done", 40000)


@pytest.mark.parametrize(("code", "links", "runs"), [(0, 5, 1), (3, 5, 1), (4, 2, 3), (4, 0, 1)])
def test_a_chain_ends_with_its_links_and_with_any_other_code(slurm, code, links, runs):
    (slurm[0] / "spool" / "code").write_text(str(code))
    (slurm[0] / "spool" / "progress").touch()
    found, said, called = submit(slurm, "chain.sh", LINKS=str(links))
    assert found == code
    assert sum(call.startswith("srun") for call in called) == runs
    assert (f"not done after {links} restarts" in said) == (code == 4)


def test_a_chain_ends_where_a_run_makes_no_progress(slurm):
    """As when the time limit is too short for one step: it would be requeued to no end."""
    (slurm[0] / "spool" / "code").write_text("4")
    code, said, called = submit(slurm, "chain.sh")
    assert code == 4
    assert len(called) == 1
    assert "made no progress (newest checkpoint: none); not requeued" in said


def test_a_damaged_checkpoint_of_a_later_step_does_not_end_a_chain(slurm):
    (slurm[0] / "spool" / "code").write_text("4")
    (slurm[0] / "spool" / "progress").touch()
    (slurm[0] / "small.out").mkdir()
    (slurm[0] / "small.out" / "checkpoint_9.h5").touch()
    _, said, called = submit(slurm, "chain.sh", LINKS="1")
    assert len(called) == 3  # srun, scontrol requeue, srun
    assert "not done after 1 restarts" in said


@with_mpirun
@pytest.mark.parametrize("signalled", [False, True])
def test_the_job_of_mpirun_passes_the_signal_on(slurm, signalled):
    folder, environment = slurm
    case = folder / "small.toml"
    if signalled:
        case.write_text(case.read_text().replace(CASE, LONG))
    job = subprocess.Popen(
        ["bash", ROOT / "jobs/mpirun_nodes.sh"], env=environment | {"SLURM_NTASKS": "1"},
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if signalled:
        end = time.monotonic() + 120
        while not (folder / "small.out/snapshot_000000000.vtkhdf").exists():
            assert time.monotonic() < end
            assert job.poll() is None
            time.sleep(0.05)
        job.send_signal(signal.SIGUSR1)
    said, _ = job.communicate(timeout=200)
    assert job.returncode == (4 if signalled else 0), said
    assert ("--restart auto" in said) == signalled
    assert summary(folder / "small.out")["status"] == ("stopped" if signalled else "done")


@with_mpirun
def test_a_series_measures_each_number_of_ranks_and_reports(slurm):
    options = {"SCALING": "weak", "SIZE": "16x12", "OUTPUT": "figures"}
    options["RANKS"] = "1 2"
    options["OPTIONS"] = "--lattice D2Q9 --steps 2 --backend cpu"
    code, said, called = submit(slurm, SERIES, **options)
    assert code == 0, said
    for ranks, call in zip((1, 2), called, strict=True):
        where, what = call.split(" --kill-on-bad-exit=0 --wait=30 ")
        assert where == f"srun --nodes=1 --ntasks={ranks} --ntasks-per-node={ranks}"
        assert what.startswith("mpilbm bench --weak 16x12")
        file = slurm[0] / f"figures/weak_16x12_{ranks}ranks_17.json"
        assert json.loads(file.read_text())["ranks"] == ranks
    page = (slurm[0] / "figures/scaling.html").read_text()
    assert page.count("<details>") == 1


def test_a_series_takes_as_many_nodes_as_its_ranks_need(slurm):
    (slurm[0] / "spool" / "code").write_text("2")
    code, _, called = submit(slurm, SERIES, RANKS="1 4 6", SCALING="strong", SIZE="16x12")
    assert code == 2  # of the report: there is nothing to report
    assert all(" mpilbm bench --strong 16x12" in call for call in called)
    asked = [call.split()[1:4] for call in called]
    assert asked == [
        [f"--nodes={nodes}", f"--ntasks={ranks}", f"--ntasks-per-node={each}"]
        for ranks, nodes, each in ((1, 1, 1), (4, 1, 4), (6, 2, 4))
    ]

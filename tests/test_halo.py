"""Exchange without MPI, what is known before MPI starts, and how ranks end together."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import halo_cases
import pytest

from mpilbm.errors import CommandError
from mpilbm.halo import gpu_mpi, launcher, probe, world
from mpilbm.halo.local import LocalWorld
from mpilbm.halo.plan import Plan, Transfer, incoming, outgoing
from mpilbm.registry import make, names

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
with_mpirun = pytest.mark.skipif(MPIRUN is None, reason="no mpirun")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("periodic", [True, False])
def test_slabs_of_one_process_exchange(ranks, periodic):
    here = LocalWorld(ranks)
    ends = []
    for slab in halo_cases.slabs(ranks, periodic):
        device = halo_cases.device()
        ends.append(halo_cases.Ends(slab, device, here.exchanger(slab.rank, slab, device)))
    for step in range(3):
        for end in ends:
            end.fill(step)
            end.exchange.start()
        for end in ends:
            end.exchange.finish()
            end.check(step)


def test_local_world_tells_when_a_neighbour_has_not_started():
    slab = halo_cases.slabs(2, True)[0]
    device = halo_cases.device()
    end = halo_cases.Ends(slab, device, LocalWorld(2, patience=0.2).exchanger(0, slab, device))
    end.exchange.start()
    with pytest.raises(RuntimeError, match="slab 0 awaits 40 values of slab 1 and finds nothing"):
        end.exchange.finish()


@pytest.mark.parametrize("way", names("halo"))
def test_one_rank_needs_no_mpi(way):
    slab = halo_cases.slabs(1, True)[0]
    device = halo_cases.device()
    with make("halo", way).open(slab, world.Serial(), device) as exchanger:
        end = halo_cases.Ends(slab, device, exchanger)
        end.exchange.start()
        end.exchange.finish()
        end.check(0)


def test_both_ends_give_a_message_the_same_tag():
    lower, upper = halo_cases.slabs(2, True)
    for here, there in ((lower, upper), (upper, lower)):
        sent = {m.tag for m in outgoing(halo_cases.plan_of(here), here)}
        received = {m.tag for m in incoming(halo_cases.plan_of(there), there)}
        assert sent == received
        assert len(sent) == 5


def test_transfers_without_neighbour_are_dropped():
    first, *_ = halo_cases.slabs(3, False)
    plan = Plan((Transfer(-1, 0, 0, 4), Transfer(+1, 0, 4, 4)), (Transfer(-1, 0, 8, 4),))
    assert [m.elements for m in outgoing(plan, first)] == [slice(4, 8)]
    assert incoming(plan, first) == ()


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4"}, 4),
        ({"PMI_SIZE": "3"}, 3),
        ({"SLURM_NTASKS": "8"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, 8),
        # an interactive step of one task within an allocation for eight
        (
            {
                "SLURM_NTASKS": "8",
                "SLURM_PROCID": "0",
                "SLURM_STEP_ID": "4294967290",
                "SLURM_STEP_NUM_TASKS": "1",
            },
            1,
        ),
        ({"PMIX_RANK": "2"}, 0),
    ],
)
def test_launchers_are_told_apart(environment, ranks):
    assert launcher.ranks(environment) == ranks


def test_a_child_keeps_the_settings_and_loses_the_launcher():
    settings = {"UCX_TLS": "self,cuda", "OMPI_MCA_pml": "ucx", "PATH": "/bin", "HOME": "/"}
    ours = {"PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_ess": "pmi", "SLURM_JOBID": "1"}
    assert launcher.without_launcher(settings | ours) == settings


def test_launcher_without_library(monkeypatch):
    monkeypatch.setattr(launcher, "library", lambda: None)
    monkeypatch.setattr(launcher, "ranks", lambda: None)
    assert isinstance(world.world(), world.Serial)
    monkeypatch.setattr(launcher, "ranks", lambda: 4)
    with pytest.raises(CommandError, match="started 4 ranks, but mpi4py finds no MPI library"):
        world.world()


def test_the_user_has_the_last_word():
    assert gpu_mpi.forced({}) is None
    assert gpu_mpi.forced({"MPILBM_GPU_MPI": "1"}).answer is True
    assert gpu_mpi.forced({"MPILBM_GPU_MPI": "0"}).answer is False
    with pytest.raises(CommandError, match="allowed are 1"):
        gpu_mpi.forced({"MPILBM_GPU_MPI": "yes"})


@pytest.mark.parametrize(
    ("said", "answer", "reason"),
    [
        (["started 2", "query yes", "passed"], True, "a test between two processes passed"),
        (["started 1", "query yes", "passed"], True, "one process and itself"),
        (["started 2", "query no"], False, "says that it takes no GPU memory"),
        (["started 2", "query yes"], False, r"the test failed \(exit code 139\)"),
        ([], False, "did not start"),
    ],
)
def test_verdict_on_a_probe(said, answer, reason):
    output = "".join(f"{probe.MARK} {line}\n" for line in said)
    verdict = gpu_mpi.judge(output, "exit code 139", "MPICH 5")
    assert verdict.answer is answer
    assert re.search(reason, verdict.reason)


class Ranks:
    """A communicator whose ranks gave these verdicts."""

    def __init__(self, *answers):
        self.answers = answers

    def allgather(self, _):
        return [gpu_mpi.Verdict(answer, str(answer)) for answer in self.answers]


@pytest.mark.parametrize(
    ("answers", "agreed"),
    [((True, None), True), ((True, False), False), ((None, None), None), ((False, None), False)],
)
def test_one_no_is_a_no(answers, agreed):
    assert gpu_mpi.agreed(Ranks(*answers), None).answer is agreed


def python(text, ranks, tmp_path, **environment):
    """Run a script on some ranks; (exit code, output, errors, seconds)."""
    script = tmp_path / "script.py"
    script.write_text(text)
    start = time.monotonic()
    done = subprocess.run(
        ["timeout", "-k", "5", "60", MPIRUN, "-n", str(ranks), sys.executable, script],
        env=launcher.without_launcher()
        | {"MPILBM_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
        | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start


FAILING = """
import time
from mpilbm.errors import CaseError, FileSystemError
from mpilbm.halo.world import abort_on_error
with abort_on_error() as comm:
    {body}
"""


@with_mpirun
@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("if comm.rank == 1: 1 / 0\n    comm.Barrier()", 1, "rank 1 of 3: ZeroDivisionError"),
        (
            "if comm.rank == 2: raise FileSystemError('disk full')\n    comm.Barrier()",
            5,
            "mpilbm: error: rank 2 of 3: disk full",
        ),
        ("if comm.rank == 0: raise SystemExit(4)\n    time.sleep(50)", 4, ""),
        ("comm.Barrier()", 0, ""),
    ],
)
def test_a_failing_rank_ends_all(body, code, words, tmp_path):
    found, _, errors, seconds = python(FAILING.format(body=body), 3, tmp_path)
    assert found == code
    assert words in errors
    assert seconds < 20


@with_mpirun
def test_what_all_ranks_raise_is_told_once(tmp_path):
    body = "raise CaseError('found 3, allowed 1 or 2', 'domain.size', 'a.toml')"
    code, _, errors, _ = python(FAILING.format(body=body), 3, tmp_path)
    assert code == 2
    assert errors.count("mpilbm: error: a.toml: domain.size: found 3, allowed 1 or 2\n") == 1
    assert "Traceback" not in errors


@with_mpirun
def test_ranks_that_find_themselves_alone_are_told(tmp_path):
    """As with the launcher of another MPI."""
    text = (
        "import os; from mpilbm.halo import launcher, world\n"
        "os.environ['OMPI_COMM_WORLD_SIZE'] = '2'\n"
        "try: world.world()\n"
        "except world.CommandError as error: print(error)"
    )
    code, output, _, _ = python(text, 1, tmp_path)
    assert code == 0
    assert "started 2 ranks, but each finds itself alone" in output


@pytest.mark.parametrize(
    ("vendor", "environment", "other"),
    [
        ("MPICH", {"OMPI_COMM_WORLD_SIZE": "2"}, True),
        ("MPICH", {"PMI_SIZE": "2"}, False),
        ("MPICH", {}, False),
        ("Open MPI", {"OMPI_COMM_WORLD_SIZE": "2"}, False),
    ],
)
def test_launcher_of_another_mpi_is_known_before_it_kills(vendor, environment, other):
    library = SimpleNamespace(get_vendor=lambda: (vendor, (1, 2, 3)))
    assert launcher.belongs_to_another_mpi(library, environment) is other


PROBING = """
from mpilbm.halo import gpu_mpi, world
verdict = gpu_mpi.verdict("cpu")
comm = world.world()
print(f"{comm.rank} {verdict.answer} {verdict.reason}\\n", end="", flush=True)
"""


@with_mpirun
def test_one_rank_of_a_node_probes_and_keeps_the_verdict(tmp_path):
    for _ in range(2):
        code, output, errors, _ = python(PROBING, 2, tmp_path)
        assert code == 0, errors
        assert "1 None another rank of the node asks" in output
        assert "0 True" in output
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_probe_that_hangs_ends_itself(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(launcher, "without_launcher", lambda: {"PATH": ""})
    hanging = f"import time; print('{probe.MARK} started 1', flush=True); time.sleep(60)"
    output, end = gpu_mpi._run([sys.executable, "-c", hanging], 1)
    assert "started 1" in output
    assert end == "not done after 1 s"


class Copies:
    """A communicator that hands back what was sent, changed or not."""

    rank, size = 0, 1

    def __init__(self, spoil):
        self.spoil = spoil

    def Irecv(self, target, _):  # noqa: N802
        self.target = target
        return self

    def Isend(self, source, _):  # noqa: N802
        self.target[:] = source
        self.target[-1] ^= self.spoil
        return self

    @staticmethod
    def Waitall(_):  # noqa: N802
        pass

    def allgather(self, value):
        return [value]


@pytest.mark.parametrize("spoil", [0, 1])
def test_the_probe_compares_every_value(spoil):
    assert probe.values_arrive(Copies(spoil), halo_cases.device()) == (spoil == 0)


MEASURING = """
import sys
from mpilbm import pingpong
pingpong.measure.__defaults__ = ((8, 4096),)
sys.argv[1:] = ["info", "--probe", "--json", "ways.json"]
from mpilbm.cli import main
main()
"""


@with_mpirun
def test_info_under_mpirun_tells_once_what_there_is_and_how_fast_messages_are(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, output, errors, _ = python(MEASURING, 3, tmp_path)
    assert code == 0, errors
    for line in ("compilers\n", "one way, between the first and the last rank\n", "| 4096 |"):
        assert output.count(line) == 1
    found = json.loads((tmp_path / "ways.json").read_text())
    assert found["ranks"] == 3
    assert found["pingpong"][0]["halo"] == "direct"


def test_listing_touches_no_mpi():
    text = "import sys, mpilbm.registry as r; r.names('halo'); sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0

"""Exchange without MPI, and what is known of MPI before it starts."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from support import halo_cases
from support.local_world import LocalWorld
from support.mpirun import python, with_mpirun

from mpilbm.core.errors import CommandError
from mpilbm.core.registry import make, names
from mpilbm.halo import Plan, Transfer, incoming, outgoing
from mpilbm.parallel import gpu_aware, launcher
from mpilbm.parallel import ranks as world


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("periodic", [True, False])
def test_slabs_of_one_process_exchange(ranks, periodic):
    here = LocalWorld(ranks)
    ends = []
    for slab in halo_cases.slabs(ranks, periodic):
        device = halo_cases.device()
        ends.append(halo_cases.SlabExchange(slab, device, here.exchanger(slab.rank, slab, device)))
    for step in range(3):
        for end in ends:
            end.fill(step)
            end.exchange.start()
        for end in ends:
            end.exchange.finish()
            end.check(step)


def test_local_world_reports_a_neighbour_that_has_not_started():
    slab = halo_cases.slabs(2, True)[0]
    device = halo_cases.device()
    end = halo_cases.SlabExchange(
        slab, device, LocalWorld(2, patience=0.2).exchanger(0, slab, device)
    )
    end.exchange.start()
    with pytest.raises(RuntimeError, match="slab 0 awaits 40 values of slab 1 and finds nothing"):
        end.exchange.finish()


@pytest.mark.parametrize("way", names("halo"))
def test_one_rank_needs_no_mpi(way):
    slab = halo_cases.slabs(1, True)[0]
    device = halo_cases.device()
    with make("halo", way).open(slab, world.Serial(), device) as exchanger:
        end = halo_cases.SlabExchange(slab, device, exchanger)
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


def test_the_user_has_the_last_word():
    assert gpu_aware.forced({}) is None
    assert gpu_aware.forced({"MPILBM_GPU_MPI": "1"}).answer is True
    assert gpu_aware.forced({"MPILBM_GPU_MPI": "0"}).answer is False
    with pytest.raises(CommandError, match="allowed are 1"):
        gpu_aware.forced({"MPILBM_GPU_MPI": "yes"})


@pytest.mark.parametrize(("value", "answer"), [("1", True), ("0", False), (None, False)])
def test_a_verdict_without_mpi_is_that_of_the_user(monkeypatch, value, answer):
    monkeypatch.delenv("MPILBM_GPU_MPI", raising=False)
    if value:
        monkeypatch.setenv("MPILBM_GPU_MPI", value)
    monkeypatch.setattr(launcher, "library", lambda: None)
    found = gpu_aware.verdict.__wrapped__()
    assert found.answer is answer
    assert found.reason == (f"MPILBM_GPU_MPI={value}" if value else "no MPI library")


@pytest.mark.parametrize(
    ("said", "answer", "reason"),
    [
        (["started 2", "query yes", "passed"], True, "a test between two processes passed"),
        (["started 1", "query yes", "passed"], True, "one process and itself"),
        (["started 2", "query no"], False, "reports that it does not accept GPU memory"),
        (["started 2", "query yes"], False, r"the test failed \(exit code 139\)"),
        ([], False, "did not start"),
    ],
)
def test_verdict_on_a_probe(said, answer, reason):
    output = "".join(f"{gpu_aware.MARK} {line}\n" for line in said)
    verdict = gpu_aware.judge(output, "exit code 139", "MPICH 5")
    assert verdict.answer is answer
    assert re.search(reason, verdict.reason)


class Ranks:
    """A communicator whose ranks gave these verdicts."""

    def __init__(self, *answers):
        self.answers = answers

    def allgather(self, _):
        return [gpu_aware.Verdict(answer, str(answer)) for answer in self.answers]


@pytest.mark.parametrize(
    ("answers", "agreed"),
    [((True, None), True), ((True, False), False), ((None, None), None), ((False, None), False)],
)
def test_one_no_is_a_no(answers, agreed):
    assert gpu_aware.agreed(Ranks(*answers), None).answer is agreed


PROBING = """
from mpilbm.parallel import gpu_aware, ranks
verdict = gpu_aware.verdict("cpu")
comm = ranks.world()
print(f"{comm.rank} {verdict.answer} {verdict.reason}\\n", end="", flush=True)
"""


@with_mpirun
def test_one_rank_of_a_node_probes_and_keeps_the_verdict(tmp_path):
    for _ in range(2):
        code, output, errors = python(PROBING, 2, tmp_path)
        assert code == 0, errors
        assert "1 None another rank of the node makes the test" in output
        assert "0 True" in output
    assert len(list((tmp_path / "cache").glob("*.gpu-mpi.json"))) == 1


def test_a_probe_that_hangs_ends_itself(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(launcher, "without_launcher", lambda: {"PATH": ""})
    hanging = f"import time; print('{gpu_aware.MARK} started 1', flush=True); time.sleep(60)"
    output, end = gpu_aware._run([sys.executable, "-c", hanging], 1)
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
    assert gpu_aware.values_arrive(Copies(spoil), halo_cases.device()) == (spoil == 0)


MEASURING = """
import sys
from mpilbm.view.bench import exchange_time
exchange_time.pingpong.__defaults__ = ((8, 4096),)
sys.argv[1:] = ["info", "--probe", "--json", "ways.json"]
from mpilbm.cli import main
main()
"""


@with_mpirun
def test_info_under_mpirun_prints_devices_and_message_speed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output, errors = python(MEASURING, 3, tmp_path)
    assert code == 0, errors
    for line in ("compilers\n", "one way, between the first and the last rank\n", "| 4096 |"):
        assert output.count(line) == 1
    found = json.loads((tmp_path / "ways.json").read_text())
    assert found["ranks"] == 3
    assert found["pingpong"][0]["halo"] == "direct"


def test_listing_touches_no_mpi():
    text = (
        "import sys, mpilbm.core.registry as r; r.names('halo'); sys.exit('mpi4py' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0

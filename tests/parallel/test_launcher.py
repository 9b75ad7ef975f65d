"""Ranks that a launcher starts: how many there are, and how they end together."""

from types import SimpleNamespace

import pytest
from support.mpirun import python, with_mpirun

from mpilbm.core.errors import CommandError
from mpilbm.parallel import launcher
from mpilbm.parallel import ranks as world


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
        ({"PMIX_RANK": "2"}, None),
        ({"PALS_RANKID": "1", "PALS_LOCAL_RANKID": "1"}, None),
        ({"MV2_COMM_WORLD_SIZE": "6", "MV2_COMM_WORLD_RANK": "5"}, 6),
    ],
)
def test_launchers_are_distinguished(environment, ranks):
    assert launcher.ranks(environment) == ranks


@pytest.mark.parametrize(
    ("environment", "several"),
    [
        ({}, False),
        ({"PMI_SIZE": "1", "PMI_RANK": "0"}, False),
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, True),
        ({"PMIX_RANK": "0"}, True),  # the number of ranks is not known
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, False),
    ],
)
def test_several_ranks(environment, several):
    assert launcher.several_ranks(environment) == several


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        ({}, 0),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "SLURM_LOCALID": "0"}, 3),
        ({"MPI_LOCALRANKID": "2", "SLURM_LOCALID": "0"}, 2),
        ({"PALS_RANKID": "7", "PALS_LOCAL_RANKID": "3"}, 3),
        ({"MV2_COMM_WORLD_LOCAL_RANK": "1", "SLURM_LOCALID": "0"}, 1),
        ({"MVP_COMM_WORLD_LOCAL_RANK": "1"}, 1),
        ({"FLUX_TASK_LOCAL_ID": "2"}, 2),
        ({"PMI_LOCAL_RANK": "2"}, 2),
        ({"SLURM_LOCALID": "1"}, 1),
    ],
)
def test_the_number_on_the_node(environment, number):
    assert launcher.local_rank(environment) == number


def test_no_higher_thread_level_is_requested_than_is_used(monkeypatch):
    levels = []
    MPI = SimpleNamespace(
        Is_initialized=lambda: False, Init_thread=levels.append, THREAD_FUNNELED="funneled",
        COMM_WORLD=SimpleNamespace(size=1), get_vendor=lambda: ("Open MPI", (5, 0, 0)),
    )  # fmt: skip
    monkeypatch.setattr(launcher, "library", lambda: MPI)
    monkeypatch.setattr(launcher, "ranks", lambda *_: None)
    assert world.world() is MPI.COMM_WORLD
    assert levels == ["funneled"]


def test_a_child_keeps_the_settings_and_loses_the_launcher():
    settings = {"UCX_TLS": "self,cuda", "OMPI_MCA_pml": "ucx", "PATH": "/bin", "HOME": "/"}
    settings |= {"MV2_USE_CUDA": "1", "OMPI_MCA_plm": "isolated"}
    ours = {"PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_ess": "pmi", "SLURM_JOBID": "1"}
    ours |= {"MV2_COMM_WORLD_RANK": "0", "PALS_LOCAL_RANKID": "0", "FLUX_TASK_LOCAL_ID": "0"}
    assert launcher.without_launcher(settings | ours) == settings


def test_launcher_without_library(monkeypatch):
    monkeypatch.setattr(launcher, "library", lambda: None)
    monkeypatch.setattr(launcher, "ranks", lambda *_: None)
    assert isinstance(world.world(), world.Serial)
    monkeypatch.setattr(launcher, "ranks", lambda *_: 4)
    with pytest.raises(CommandError, match="started 4 ranks, but mpi4py finds no MPI library"):
        world.world()


CYCLIC = """
from mpi4py import MPI
from mpilbm.parallel.ranks import by_node

class Nodes:
    '''COMM_WORLD on {nodes} nodes, on which a launcher has placed the ranks in turn.'''

    def Split_type(self, kind, key):
        return MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % {nodes}, key)

    def __getattr__(self, name):
        return getattr(MPI.COMM_WORLD, name)

world = Nodes()
comm = by_node(world)
assert comm.size == world.size
if comm is not world:
    found = comm.gather(world.rank)
    if comm.rank == 0:
        print(found, flush=True)
"""


@with_mpirun
@pytest.mark.parametrize(
    ("ranks", "nodes", "order"),
    [(4, 2, [0, 2, 1, 3]), (5, 3, [0, 3, 1, 4, 2]), (3, 1, None), (3, 3, None), (1, 1, None)],
)
def test_ranks_of_a_node_follow_each_other(ranks, nodes, order, tmp_path):
    code, output, errors = python(CYCLIC.format(nodes=nodes), ranks, tmp_path)
    assert code == 0, errors
    assert output.strip() == (str(order) if order else "")


FAILING = """
import time
from mpilbm.core.errors import CaseError, FileSystemError
from mpilbm.parallel.ranks import abort_on_error
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
        ("if comm.rank == 0: raise SystemExit(4)\n    while True: time.sleep(1)", 4, ""),
        ("comm.Barrier()", 0, ""),
    ],
)
def test_a_failing_rank_ends_all(body, code, words, tmp_path):
    found, _, errors = python(FAILING.format(body=body), 3, tmp_path)
    assert found == code
    assert words in errors


@with_mpirun
def test_an_error_of_all_ranks_is_reported_once(tmp_path):
    body = "raise CaseError('found 3, allowed 1 or 2', 'domain.size', 'a.toml')"
    code, _, errors = python(FAILING.format(body=body), 3, tmp_path)
    assert code == 2
    assert errors.count("mpilbm: error: a.toml: domain.size: found 3, allowed 1 or 2\n") == 1
    assert "Traceback" not in errors


@with_mpirun
def test_a_fault_of_one_rank_in_a_common_action_is_printed_by_it(tmp_path):
    body = "from mpilbm.parallel import together\n    together(comm, lambda: 1 // (comm.rank - 1))"
    code, output, errors = python(FAILING.format(body=body), 3, tmp_path)
    assert code == 1
    assert errors.count("ZeroDivisionError") == 1
    assert "rank 1 of 3: " in errors
    assert "Abort" not in errors + output


@with_mpirun
def test_ranks_without_their_peers_are_reported(tmp_path):
    """As with the launcher of another MPI."""
    text = (
        "import os; from mpilbm.parallel import launcher, ranks\n"
        "os.environ['OMPI_COMM_WORLD_SIZE'] = '2'\n"
        "try: ranks.world()\n"
        "except ranks.CommandError as error: print(error)"
    )
    code, output, _ = python(text, 1, tmp_path)
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

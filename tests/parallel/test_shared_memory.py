"""MPICH without shared memory: one line before MPI starts, and a run of one rank goes on."""

from types import SimpleNamespace

import pytest

from mpilbm.core.errors import CommandError
from mpilbm.parallel import launcher
from mpilbm.parallel.ranks import Serial, world
from mpilbm.run.preflight import installation

MPICH = SimpleNamespace(
    get_vendor=lambda: ("MPICH", (5, 0, 2)),
    Get_library_version=lambda: "MPICH Version:      5.0.2\nmore",
)


@pytest.fixture
def _none(monkeypatch, tmp_path):
    for name in (*launcher.LOCAL_RANKS, *launcher.SILENT, "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(launcher, "library", lambda: MPICH)
    monkeypatch.setattr(launcher, "SHARED_MEMORY", tmp_path / "shm")


def test_the_problem_names_the_folder(tmp_path):
    (tmp_path / "file").touch()
    assert launcher.shared_memory_problem(tmp_path) == ""
    assert launcher.shared_memory_problem(tmp_path / "none") == f"{tmp_path}/none is missing"
    found = launcher.shared_memory_problem(tmp_path / "file")
    assert found == f"{tmp_path}/file cannot be written (Not a directory)"


@pytest.mark.usefixtures("_none")
def test_several_ranks_are_refused_and_one_needs_no_mpi(monkeypatch):
    assert isinstance(world(), Serial)
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(
        CommandError, match=r"MPICH 5.0.2 requires shared memory .*/shm is missing;"
    ):
        world()
    monkeypatch.setenv("MPI_LOCALRANKID", "1")
    with pytest.raises(SystemExit) as end:
        world()
    assert end.value.code == CommandError.exit_code


@pytest.mark.usefixtures("_none")
def test_info_says_it():
    (fact,) = installation.shared_memory("MPICH 5.0.2")
    assert "is missing: runs have one rank" in fact.value
    assert "--shm-size" in fact.fix
    assert not installation.shared_memory("Open MPI 5.0")

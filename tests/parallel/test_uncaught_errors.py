"""An error that a Python program does not catch ends all ranks."""

import pytest
from support.mpirun import python, with_mpirun

from mpilbm.parallel.ranks import Serial, guard

PROGRAM = """
import sys
from mpi4py import MPI
from mpilbm.parallel.ranks import guard

comm = MPI.COMM_WORLD
for known in (comm, comm, comm.Dup(), comm.Split(comm.rank > 0)):
    guard(known)
{body}
print("the end")
"""


@with_mpirun
@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("if comm.rank == 1: 1 / 0\ncomm.Barrier()", 1, "ZeroDivisionError"),
        ("if comm.rank == 2: raise KeyboardInterrupt\ncomm.Barrier()", 1, "KeyboardInterrupt"),
        ("comm.Barrier()", 0, ""),
    ],
)
def test_an_error_of_one_rank_ends_all(body, code, words, tmp_path):
    found, output, errors = python(PROGRAM.format(body=body), 3, tmp_path)
    assert (found, output.count("the end")) == (code, 0 if code else 3)
    assert words in errors
    assert "Abort" in errors + output or not code


@with_mpirun
def test_an_error_of_all_ranks_needs_no_abort(tmp_path):
    """Each rank has a file: messages that several write at once are interleaved."""
    own = f"sys.stderr = open({str(tmp_path)!r} + f'/rank{{comm.rank}}', 'w')\n1 / 0"
    code, output, errors = python(PROGRAM.format(body=own), 3, tmp_path)
    assert code == 1
    found = [(tmp_path / f"rank{rank}").read_text() for rank in range(3)]
    assert [text.count("ZeroDivisionError: ") for text in found] == [1, 1, 1]
    assert "Abort" not in errors + output


@with_mpirun
def test_the_excepthook_of_a_program_is_kept(tmp_path):
    own = "sys.excepthook = own = print\nguard(comm)\nassert sys.excepthook is own"
    code, output, errors = python(PROGRAM.format(body=own), 2, tmp_path)
    assert (code, output.count("the end")) == (0, 2), errors


def test_one_rank_has_no_hook(monkeypatch):
    monkeypatch.setattr("sys.excepthook", None)
    guard(Serial())

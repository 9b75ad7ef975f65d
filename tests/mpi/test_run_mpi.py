"""Whole runs on several ranks leave the files that one rank leaves, bit for bit."""

import h5py
import numpy as np
import pytest
from support.mpi_runs import LAST, datasets, monitor, run_on_rank_0, run_on_ranks
from support.runs import pushed
from support.settings import tables
from support.slabs import PRECISIONS

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError, NonFiniteError
from mpilbm.core.files.file_digest import Extent, trailer
from mpilbm.core.registry import find
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.solids.volumes import array_files

pytestmark = pytest.mark.mpi

OUTPUTS = [
    {"name": "checkpoint", "every": 4},
    {"name": "snapshot", "every": 4, "fields": ["rho", "u", "vorticity", "q_criterion"]},
    {"name": "monitor", "every": 1},
    {"name": "statistics", "every": 2, "average": ["x"], "write": 4},
    {"name": "statistics", "every": 2, "average": ["x", "y"], "begin": 1},
    {"name": "statistics", "every": 3},
]
# lattice, layout, collision, setting, precision, way of the halo; programs of other tests too
CASES = [
    ("D2Q9", "ab", "trt", "walls", "mixed", "direct"),
    ("D2Q9", "aa", "trt", "walls", "mixed", "staged"),
    ("D2Q9", "ab", "bgk", "forced", "single", "staged"),
    ("D2Q9", "aa", "bgk", "forced", "single", "direct"),
    ("D2Q9", "aa", "trt", "through", "double", "direct"),
    ("D3Q19", "ab", "bgk", "periodic", "single", "direct"),
    ("D3Q19", "aa", "bgk", "periodic", "single", "staged"),
    ("D3Q19", "ab", "trt", "walls", "single", "staged"),
    ("D3Q19", "aa", "trt", "walls", "single", "direct"),
    ("D3Q19", "aa", "trt", "walls", "single", "staged"),
    ("D3Q19", "aa", "bgk", "forced", "mixed", "direct"),
    ("D3Q19", "ab", "bgk", "through", "single", "auto"),
    ("D3Q19", "esopull", "trt", "walls", "half", "direct"),
    ("D3Q13", "aa", "mrt", "walls", "single", "direct"),
    ("D3Q19", "moments", "regularized", "walls", "mixed_moments", "direct"),
    ("D2Q9", "moments", "regularized", "walls", "half", "direct"),
]


def outputs(lattice) -> list[dict]:
    """All of them, but means that a staggered lattice has not."""
    rows = find("lattices", lattice).staggered
    return [
        each for each in OUTPUTS
        if not (rows and each["name"] == "statistics" and "x" not in each.get("average", ()))
    ]  # fmt: skip


def flow(lattice, layout, collision, setting, precision, way="direct", steps=LAST, **more):
    found = tables(lattice, layout, collision, setting, precision, output=outputs(lattice), **more)
    for body in found.get("body", ()) if setting == "forced" else ():  # a ball may only spin
        x, y, *_ = body["shape"]["centre"]
        spin = [f"-0.02*(y - {y})", f"0.02*(x - {x})", 0]
        body["boundary"]["velocity"] = spin[: len(body["shape"]["centre"])]
    found |= {"run": {"steps": steps}, "halo": {"name": way}, "backend": {"name": "cpu"}}
    return parse_case(found, "flow.toml")


def profiles(directory):
    """Name -> arrays of the last files of statistics."""
    paths = sorted(directory.glob(f"statistics_*_{LAST:09d}.h5"))
    assert len(paths) in (2, 3)  # two where rows are staggered
    return [{name: data.tobytes() for name, data in datasets(path).items()} for path in paths]


@pytest.mark.parametrize("choice", CASES, ids="-".join)
def test_ranks_do_not_show(mpi_tmp_path, comm, choice):
    case, (one, many) = flow(*choice), (mpi_tmp_path / "one", mpi_tmp_path / "many")
    run_on_rank_0(comm, case, one)
    run(case, comm, many)
    comm.Barrier()
    for step in (4, LAST):
        for name in (f"checkpoint_{step:09d}.h5", f"snapshot_{step:09d}.vtkhdf"):
            assert (many / name).read_bytes() == (one / name).read_bytes()
    assert monitor(many) == monitor(one)
    assert profiles(many) == profiles(one)
    u = datasets(one / f"snapshot_{LAST:09d}.vtkhdf")["VTKHDF/CellData/u"]
    assert np.isfinite(u).all()
    assert u.std() > 1e-4


@pytest.mark.parametrize(("before", "after"), [("ab", "ab"), ("aa", "aa"), ("ab", "aa")])
def test_a_restart_on_other_ranks_does_not_show(mpi_tmp_path, comm, before, after):
    """1 rank, then all; all, then 1 and all but one."""
    model = ("trt", "walls", "single")
    whole, first = mpi_tmp_path / "whole", flow("D3Q19", before, *model, steps=4)
    second = flow("D3Q19", after, *model)
    run_on_rank_0(comm, flow("D3Q19", before, *model), whole)
    for number, (start, end) in enumerate([(1, comm.size), (comm.size, 1), (comm.size, -1)]):
        parts = mpi_tmp_path / str(number)
        run_on_ranks(comm, start, first, parts)
        run_on_ranks(comm, end % comm.size or comm.size, second, parts, restart="auto")
        for name in (f"checkpoint_{LAST:09d}.h5", f"snapshot_{LAST:09d}.vtkhdf"):
            here, there = datasets(whole / name), datasets(parts / name)
            assert here.keys() == there.keys()
            assert all(np.array_equal(here[key], there[key]) for key in here)
        assert monitor(parts) == monitor(whole)
        assert profiles(parts) == profiles(whole)


def test_initial_fields_that_are_wrong_on_one_rank_end_all(mpi_tmp_path, comm):
    initial = {"rho": "sqrt(12.4 - z)", "u": [0, 0, 0]}
    case = flow("D3Q19", "ab", "bgk", "periodic", "single", initial=initial)
    with pytest.raises(CaseError, match=r"initial.rho: nan in cell x=0, y=0, z=12") as error:
        run(case, comm, mpi_tmp_path / "never")
    assert len(set(comm.allgather(str(error.value)))) == 1
    assert not (mpi_tmp_path / "never").exists()


def test_no_rank_opens_a_damaged_mask(mpi_tmp_path, comm, monkeypatch):
    """HDF5 may not survive it."""
    if comm.rank == 0:
        path = mpi_tmp_path / "rock.h5"
        with h5py.File(path, "w") as file:
            file["solid"] = np.zeros((10, 12), np.uint8)
        content = path.read_bytes()
        path.write_bytes(content + trailer([Extent(0, 1, len(content))], [0]))
    comm.Barrier()
    seen = []
    monkeypatch.setattr(array_files, "opened", seen.append)
    tables = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [12, 10], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1},
        "run": {"steps": 1},
        "body": [{"mask": "rock.h5:solid", "boundary": {"name": "bounce_back"}}],
    }
    case = parse_case(tables | {"backend": {"name": "cpu"}}, mpi_tmp_path / "rock.toml")
    with pytest.raises(CaseError, match=r"body.0.mask: 'rock.h5:solid' is damaged: bytes 0 to"):
        run(case, comm, mpi_tmp_path / "never")
    assert not seen


def test_every_precision_is_there():
    assert {choice[4] for choice in CASES} == set(PRECISIONS)


def test_where_a_flow_became_unstable_does_not_depend_on_the_ranks(mpi_tmp_path, comm):
    case, found = pushed(2000), []
    one, many = mpi_tmp_path / "one", mpi_tmp_path / "many"
    for ranks, folder in ((Serial(), one), (comm, many)):
        if ranks is comm or comm.rank == 0:
            with pytest.raises(NonFiniteError) as raised:
                run(case, ranks, folder)
            found.append(str(raised.value).partition(" on rank")[0])
        comm.Barrier()
    assert len(set(found)) == 1
    assert "first at cell (0, 0)" in found[0]
    (name,) = (path.name for path in one.glob("checkpoint_*.h5"))
    assert (many / name).read_bytes() == (one / name).read_bytes()

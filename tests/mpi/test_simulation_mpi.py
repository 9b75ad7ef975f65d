"""A simulation in Python on several ranks has the results of one rank, bit for bit."""

import h5py
import numpy as np
import pytest
from support.outputs_cases import make_case

import mpilbm
from mpilbm.core import registry
from mpilbm.core.errors import OtherRankError
from mpilbm.parallel import on_root
from mpilbm.solids import build

pytestmark = pytest.mark.mpi

NAMES = ("rho", "u", "vorticity", "solid")
BODY = [{"label": "ball", "shape": {"name": "sphere", "centre": [3, 2.5, 4], "radius": 1.4},
         "boundary": {"name": "bounce_back"}}]  # fmt: skip


def flow(layout="ab", non_equilibrium=False):
    initial = {"u": ["0.02*sin(2*pi*z/nz)", 0, 0.01], "non_equilibrium": non_equilibrium}
    return make_case(
        (6, 5, 8), [{"name": "body_forces", "every": 5}], body=BODY, initial=initial,
        layout={"name": layout},
    )  # fmt: skip


def velocity(x, y, z):
    return 0.01 * (x > 3) * z, 0.02 * (y < 2), 0.001 * z


def march(comm, case, how, directory):
    """Fields, sums and forces after steps, a new velocity, a new density, and steps."""
    with mpilbm.Simulation(case, comm) as sim:
        sim.run(3)
        z, y, x = np.meshgrid(*(np.arange(n) + 0.5 for n in (8, 5, 6)), indexing="ij")
        begin, end = sim.planes
        u = np.stack([part + 0 * x for part in velocity(x, y, z)], axis=-1)
        value = {"function": velocity, "array": u, "local": u[begin:end]}[how]
        sim.set_field("u", value, local=how == "local")
        sim.set_field("rho", 1 + 0.001 * x * z)
        sim.run(4)
        fields = {name: sim.field(name) for name in NAMES}
        for name in NAMES:
            local = sim.field(name, local=True)
            assert np.array_equal(sim.device_field(name), local)
            whole = comm.bcast(fields[name])
            assert np.array_equal(whole[begin:end], local)
            assert (fields[name] is None) == (sim.rank > 0)
        sim.checkpoint(directory / "state.h5")
        sim.save(directory / "a.vtkhdf", ["u"])
        found = fields, sim.sums(), sim.forces()["ball"].tolist()
    assert comm.allgather(found[1:]) == [found[1:]] * comm.size
    return found


@pytest.mark.parametrize("layout", ["ab", "aa"])
@pytest.mark.parametrize("non_equilibrium", [False, True])
@pytest.mark.parametrize("how", ["function", "array", "local"])
def test_ranks_have_the_bits_of_one(comm, how, non_equilibrium, layout, mpi_tmp_path):
    from mpi4py import MPI

    case = flow(layout, non_equilibrium)
    several = march(comm, case, how, mpi_tmp_path)
    alone = mpi_tmp_path / f"alone{comm.rank}"
    alone.mkdir()
    one = march(MPI.COMM_SELF, case, "array", alone)
    assert one[1:] == several[1:]
    if comm.rank == 0:
        for name in NAMES:
            assert np.array_equal(several[0][name], one[0][name]), name
        with h5py.File(mpi_tmp_path / "a.vtkhdf") as file:
            assert np.array_equal(file["VTKHDF/CellData/u"], one[0]["u"])
        with h5py.File(mpi_tmp_path / "state.h5") as file, h5py.File(alone / "state.h5") as other:
            assert np.array_equal(file["fluid/f"], other["fluid/f"])


def test_a_checkpoint_continues_on_another_number_of_ranks(comm, mpi_tmp_path):
    from mpi4py import MPI

    with mpilbm.Simulation(flow(), comm) as sim:
        sim.run(3)
        sim.checkpoint(mpi_tmp_path / "state.h5")
        sim.run(3)
        u = comm.bcast(sim.field("u"))
    with mpilbm.Simulation(flow(), MPI.COMM_SELF, restart=mpi_tmp_path / "state.h5") as sim:
        sim.run(3)
        assert np.array_equal(sim.field("u"), u)


def test_each_rank_has_a_simulation_of_its_own(comm):
    from mpi4py import MPI

    with mpilbm.Simulation(flow(), MPI.COMM_SELF) as sim:
        sim.run(comm.rank + 1)  # no rank waits for another
        assert sim.field("rho").shape == (8, 5, 6)
    assert comm.allgather(sim.step) == list(range(1, comm.size + 1))


def test_an_error_of_one_rank_is_raised_on_all(comm):
    def bad(x, y, z):
        return np.where(z > 7, np.nan, 1.0)  # in the last slab

    with mpilbm.Simulation(flow(), comm) as sim:
        with pytest.raises(mpilbm.UsageError, match=r"rho = nan in cell \(0, 0, 7\)"):
            sim.set_field("rho", bad)
        sim.run(1)


def test_a_fault_of_one_rank_is_raised_on_all(comm, monkeypatch):
    """A program may catch it on each rank and continue; no rank waits for the other."""
    real = build.build

    def faulty(*arguments):
        if comm.rank == 0:
            raise ValueError("invalid entry")
        return real(*arguments)

    monkeypatch.setattr(build, "build", faulty)
    kind = ValueError if comm.rank == 0 else OtherRankError
    with pytest.raises(kind, match="invalid entry"):
        mpilbm.Simulation(flow(), comm)
    monkeypatch.undo()
    with mpilbm.Simulation(flow(), comm) as sim:
        sim.run(1)


def test_messages_are_kept_by_rank_0(comm, capfd):
    with mpilbm.Simulation(flow(), comm) as sim:
        sim.run(1)
    assert bool(sim.messages) == (comm.rank == 0)
    assert capfd.readouterr() == ("", "")
    assert on_root(comm, lambda: sim.messages[-1]).startswith(f"{comm.size} rank")


def test_the_class_of_a_layout_may_be_local_to_a_function(comm):
    """Such a class cannot be pickled, so that ranks exchange its table."""
    own = {kind: dict(found) for kind, found in registry._classes.items()}

    @registry.register("layouts", "of_a_function")
    class OfAFunction(type(registry.make("layouts", "ab"))):
        pass

    try:
        with mpilbm.Simulation(flow("of_a_function"), comm) as sim:
            sim.run(2)
            mine = sim.sums()
        with mpilbm.Simulation(flow("ab"), comm) as sim:
            sim.run(2)
            assert sim.sums() == mine
    finally:
        registry._classes.update(own)

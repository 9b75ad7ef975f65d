"""The ping-pong of `mpilbm info --probe`: every way sends what it is asked to, and is shown."""

import json

import pytest

from mpilbm.backends.auto import Auto
from mpilbm.backends.opencl import Opencl, devices
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel import ranks
from mpilbm.view.bench.exchange_time import Route, lines, pingpong, route
from mpilbm.view.bench.table import deliver

pytestmark = pytest.mark.mpi
SIZES = (8, 4096)


@pytest.mark.mpi(min_size=2)
def test_the_first_and_the_last_rank_measure():
    comm = ranks.world()
    found = pingpong(comm, SIZES)
    assert len(found) == (comm.rank in (0, comm.size - 1))
    for each in found:
        assert (each.halo, each.memory, each.sizes) == ("direct", "host", SIZES)
        assert min(each.seconds) > 0
        assert each.latency == each.seconds[0]
        assert each.bandwidth == SIZES[1] / each.seconds[1]


@pytest.mark.mpi(min_size=2)
def test_a_way_that_is_refused_says_why():
    comm = ranks.world()
    pair = comm.Split(comm.rank < 2)
    device = make("backends", "cpu").open()
    if comm.rank < 2:
        assert min(route("staged", "host", pair, device, SIZES).seconds) > 0
        for name in ("nccl", "cuda_ipc"):
            assert "the ranks run on CPUs" in route(name, "GPU", pair, device, SIZES).problem
    pair.Free()


@pytest.mark.mpi(min_size=2)
def test_arrays_of_opencl_travel_through_the_host(monkeypatch):
    try:
        devices.devices()
    except CaseError:
        pytest.skip("no OpenCL device")
    comm = ranks.world()
    monkeypatch.setattr(Auto, "resolve", lambda self: Opencl())
    found = {(each.halo, each.memory): each for each in pingpong(comm, SIZES)}
    if found:
        assert min(found["staged", "GPU"].seconds) > 0
        for name, words in (("direct", "an address"), ("nccl", "no CUDA"), ("cuda_ipc", "no CUDA")):
            assert words in found[name, "GPU"].problem


def test_the_table_and_the_file_hold_the_figures(tmp_path, capsys):
    found = [Route("direct", "host", SIZES, (2e-6, 1e-5)), Route("nccl", "GPU", problem="no GPU")]
    text = lines(found)
    assert "| 4096 | 10 | 0.41 |" in text
    assert "direct, host memory: latency 2 µs, bandwidth 0.41 GB/s" in text
    assert text[-1] == "nccl, GPU memory: not measured: no GPU"
    deliver(text, {"pingpong": [each.row() for each in found]}, tmp_path / "a.json")
    assert capsys.readouterr().out.splitlines() == text
    first, last = json.loads((tmp_path / "a.json").read_text())["pingpong"]
    assert (first["latency"], first["bandwidth"]) == (2e-6, 4096 / 1e-5)
    assert last["problem"] == "no GPU"

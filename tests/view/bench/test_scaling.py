"""`mpilbm bench --weak`, `--strong` and the model of a step."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.commands import call, refused

from mpilbm.case.case import parse_case
from mpilbm.run.preflight.slabs import Model
from mpilbm.view.bench import exchange_time
from mpilbm.view.bench.scaling import on_device
from mpilbm.view.bench.variants import Series, tomllib

SMALL = ("--lattice", "D2Q9", "--steps", "2", "--backend", "cpu")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The JSON of a weak series of two boxes on one rank."""
    file = tmp_path_factory.mktemp("measured") / "weak.json"
    settings = ("--setting", "periodic,duct", "--json", str(file))
    result = call("bench", "--weak", "20x16", *SMALL, *settings)
    assert result.exit_code == 0, result.output
    return file


def test_the_file_holds_all_to_repeat_the_run(measured):
    found = json.loads(measured.read_text())
    assert found["scaling"] == "weak"
    known = {"date", "time", "command", "mpilbm", "sources", "python", "numpy", "mpi", "hosts"}
    assert known | {"nodes", "ranks", "environment"} <= found.keys()
    assert (found["nodes"], found["ranks"], len(found["sources"])) == (1, 1, 40)
    for row, setting in zip(found["rows"], ("periodic", "duct"), strict=True):
        assert (row["setting"], row["size"], row["steps"]) == (setting, [20, 16], 2)
        assert parse_case(tomllib.loads(row["case"])).domain.size == (20, 16)
        assert len(row["seconds"]) == 5
        assert row["alone"]["size"] == [20, 16]
        assert len(row["alone"]["glups"]) == 1
        assert row["efficiency"] == pytest.approx(row["glups"] / row["alone"]["glups"][0])
        assert (row["against"], row["link"], row["halo"]["bytes"]) == ("alone", None, [0])
        assert row["overhead"] >= 0


def test_a_file_has_a_name_of_its_own():
    result = call("bench", "--strong", "12", *SMALL)
    assert result.exit_code == 0, result.output
    (file,) = Path().glob("strong_12_1ranks_*.json")
    assert f"wrote {file}" in result.output
    assert "whole" not in json.loads(file.read_text())["rows"][0]


def test_a_duct_is_that_of_the_paper(measured):
    case = parse_case(tomllib.loads(json.loads(measured.read_text())["rows"][1]["case"]))
    assert case.domain.periodic == (False, True)
    assert case.fluids[0].force.value[0] == 0 < case.fluids[0].force.value[1]


def test_a_rank_alone_keeps_the_device_that_it_has_among_all():
    """Which is not that of its local rank where each rank sees a single GPU."""
    given = Series((), overrides=("fluid.viscosity=0.1",))
    for index, device in ((0, ["backend.device=0"]), (None, [])):
        series = on_device(given, "any", index)
        assert list(series.overrides) == ["fluid.viscosity=0.1", "backend.name='any'", *device]


# --------------------------------------------------------------------------------- model


def test_the_fit_finds_the_line_that_points_lie_on():
    points = [(n, 5e-6 + n / 2e11) for n in (2**11, 2**16, 2**21, 2**27)]
    latency, bandwidth = exchange_time.fit(points)
    assert latency == pytest.approx(5e-6)
    assert bandwidth == pytest.approx(2e11)


def test_noise_gives_no_negative_numbers():
    for times in ([3e-5, 2e-5, 1e-5], [1e-9, 1e-5, 1.2e-2]):
        latency, bandwidth = exchange_time.fit(list(zip([2**10, 2**16, 2**22], times, strict=True)))
        assert latency >= 0
        assert bandwidth > 0


def test_exchanges_in_streams_are_timed_without_a_wait_of_the_host_in_between():
    calls = []
    comm = SimpleNamespace(barrier=lambda: calls.append("all"), allgather=lambda value: [value])
    device = SimpleNamespace(synchronize=lambda: calls.append("wait"))
    exchange = SimpleNamespace(start=calls.append, arrival=lambda: len(calls))
    assert exchange_time._seconds(exchange, comm, device) > 0
    assert calls == ["wait", "all", None, 3, 4, 5, 6, "wait"]


def a_model(weak, **more):
    """512^3 cells of 152 bytes at 4 TB/s, faces of 10.5 MB at 100 GB/s."""
    numbers = {"planes": 512, "plane_cells": 2.0**18, "plane_fluid": 2.0**18}
    numbers |= {"bytes_per_update": 152, "copy": 4e12, "overhead": 5e-6}
    return Model(
        weak=weak, **(numbers | {"face_bytes": 1e7, "latency": 1e-5, "bandwidth": 1e11} | more)
    )


def test_a_hidden_exchange_costs_nothing():
    model = a_model(True)
    alone = 2**27 * 152 / 4e12
    assert model.seconds(1) == pytest.approx(alone)
    assert model.seconds(2) == model.seconds(1024) == pytest.approx(alone)
    assert model.glups(1024) == pytest.approx(1024 * 2**27 / alone / 1e9)
    assert model.ranks[-1] == 1024


def test_a_tiny_box_takes_what_its_host_needs():
    model = a_model(True, planes=2, plane_cells=100)
    assert model.seconds(1) == pytest.approx(5e-6)
    assert model.seconds(2) == pytest.approx(2 * 5e-6 + 1e-5 + 1e7 / 1e11)


def test_an_exchange_that_takes_longer_is_seen():
    model = a_model(True, bandwidth=1e9)
    edges = 2 * 2**18 * 152 / 4e12
    assert model.seconds(2) == pytest.approx(edges + 5e-6 + 1e-5 + 1e-2)


def test_strong_scaling_ends_with_the_planes():
    model = a_model(False, planes=100)
    assert model.ranks == [1, 2, 4, 8, 16, 32, 64]
    assert model.seconds(64) == model.seconds(50)  # the slab with the most planes counts
    assert model.seconds(64) >= model.exchange()
    assert model.efficiency(1) == 1 > model.efficiency(8) > model.efficiency(64)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bench", "--weak", "8", "--strong", "8"), ("--weak", "leave out --strong")),
        (("bench", "--weak", "8", "--size", "8"), ("--weak", "leave out --size")),
        (("bench", "nowhere.toml", "--strong", "8"), ("--strong", "leave out CASE")),
        (("bench", "--strong", "8x"), ("--strong", "'8x'", "128x64x32")),
        (("bench", "--weak", ""), ("--weak", "''", "128x64x32")),
        (("bench", "--weak", "8", "--json", "no/file.json"), ("--json no/file.json",)),
        (("bench", "--weak", "8", "--startup"), ("leave out --startup",)),
        (("report", ".", "--network", "50"), ("--network", "'50'", "50GB/s,2us")),
        (("report", ".", "--network", "0GB/s,2us"), ("--network", "'0GB/s,2us'")),
        (("report", ".", "--network", "1GB/s,2"), ("--network", "'1GB/s,2'")),
        (("report", "nowhere"), ("nowhere", "no such folder")),
        (("report", "."), ("holds no measured", "bench --weak")),
        (("report", "broken"), ("half.json", "cannot be read as JSON")),
        (("report", "old"), ("old: a row lacks 'ranks'", "measure it again")),
    ],
)
def test_bad_input(arguments, words):
    Path("broken").mkdir()
    Path("broken/half.json").write_text('{"scaling": "weak", ')
    Path("old").mkdir()
    Path("old/file.json").write_text('{"scaling": "weak", "rows": [{"size": [8, 8]}]}')
    output = refused(*arguments)
    for word in words:
        assert word in output

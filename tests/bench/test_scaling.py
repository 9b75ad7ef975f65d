"""`mpilbm bench --weak`, `--strong` and `mpilbm report`: figures, the model, the page."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.commands import call, refused

from mpilbm.bench import exchange_time, scaling_model, scaling_report
from mpilbm.bench.scaling import Scaling
from mpilbm.bench.scaling_model import Model
from mpilbm.bench.variants import Series, tomllib
from mpilbm.case.case import parse_case

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
    scaling = Scaling("weak", Series((), overrides=("fluid.viscosity=0.1",)))
    for index, device in ((0, ["backend.device=0"]), (None, [])):
        series = scaling._own_device({"backend": "any"}, SimpleNamespace(index=index))
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


def row(ranks, seconds, efficiency, **more):
    """A cavity of 192^3 in float32, as `mpilbm bench --strong 192` reports it."""
    face = 5 * 192**2 * 4
    sent = [face * ((n > 0) + (n < ranks - 1)) for n in range(ranks)]
    lines = {"latency": 1e-5, "bandwidth": 1.8e9, "points": []}
    case = "[domain]\nperiodic = [false, false, false]"
    glups = 192**3 / seconds / 1e9
    names = {"lattice": "D3Q19", "collision": "mrt", "layout": "ab", "precision": "single"}
    return names | {
        "scaling": "strong", "setting": "cavity", "size": [192] * 3, "ranks": ranks, "nodes": 1,
        "time": "2026-01-01T00:00:00", "device": "a card on a host", "fluid_cells": 192**3,
        "cells": 192**3, "glups": glups, "spread": [glups, glups], "bytes_per_update": 152,
        "copy_bandwidth": 7e10 * ranks, "efficiency": efficiency, "against": "alone",
        "alone": {"glups": [glups]}, "overhead": 1e-5, "case": case,
        "halo": {"name": "direct", "bytes": sent, "hidden": 0.9},
        "link": lines if ranks > 1 else None,
    } | more  # fmt: skip


def test_required_throughput_is_that_of_table_1():
    """Obrecht et al. 2013: kernel ms, MB and GB/s on 2, 3, 4 and 6 GPUs."""
    one, printed = 18.29e-3, {2: (9.14, 1.47, 0.16), 3: (6.10, 2.95, 0.48),
                              4: (4.57, 4.42, 0.97), 6: (3.05, 7.37, 2.42)}  # fmt: skip
    rows = [row(1, one, 1.0), *(row(n, one / n / 0.9, 0.9) for n in printed)]
    (found,) = scaling_report.series(rows)
    table = [line.split("|")[1:-1] for line in scaling_report._throughput(found)[2:-2]]
    for cells, (n, numbers) in zip(table, printed.items(), strict=True):
        assert int(cells[0]) == n
        assert [float(cells[k]) for k in (1, 2, 3)] == pytest.approx(numbers, rel=0.01, abs=0.006)
        assert float(cells[6]) == pytest.approx(float(cells[4]) / 1.8, rel=0.01)


def test_the_model_knows_that_two_ranks_between_walls_have_one_neighbour_each():
    face = 5 * 192**2 * 4
    for ranks in (2, 3):
        model = scaling_model.model("strong", [row(ranks, 0.01, 0.9)])
        assert model.face_bytes == 2 * face
        assert (model.planes, model.plane_cells, model.copy) == (192, 192**2, 7e10)


def test_a_layout_of_all_cells_updates_solid_ones_too():
    half = {"fluid_cells": 192**3 // 2}
    dense, sparse = (
        scaling_model.model("strong", [row(2, 0.01, 0.9, layout=layout, **half)])
        for layout in ("ab", "indirect")
    )
    assert dense.plane_cells == 2 * sparse.plane_cells
    assert dense.plane_fluid == sparse.plane_fluid == sparse.plane_cells


# ---------------------------------------------------------------------------------- page


def test_runs_that_differ_in_ranks_alone_are_one_series():
    other = row(2, 0.01, 0.9)
    other["halo"] = other["halo"] | {"name": "staged"}
    rows = [row(4, 0.005, 0.9), row(2, 0.01, 0.9), row(1, 0.018, 1.0), other]
    rows.append(row(2, 0.01, 0.9, layout="aa"))
    found = {each.name: [r["ranks"] for r in each.rows] for each in scaling_report.series(rows)}
    assert sorted(found.values()) == [[1, 2], [1, 2, 4], [2]]
    (whole,) = (name for name, ranks in found.items() if ranks == [1, 2, 4])
    assert whole == "D3Q19 mrt ab single cavity, 192^3 in all, a card, halo direct"


def file_of(path, *rows):
    known = {"date": "2026-01-01", "mpilbm": "0.1.0", "mpi": "MPI 1", "command": "mpilbm bench"}
    path.write_text(json.dumps(known | {"scaling": rows[0]["scaling"], "rows": list(rows)}))


def test_the_page_shows_what_was_measured(measured):
    folder = Path("figures")
    folder.mkdir()
    split = {"edge": 1e-5, "exchange": 2e-6, "bulk": 3e-3, "host": 4e-5}
    file_of(folder / "one.json", row(1, 0.018, 1.0))
    file_of(folder / "two.json", row(2, 0.01, 0.9, split=split), {"problem": "not defined"})
    (folder / "weak.json").write_text(measured.read_text())
    (folder / "other.json").write_text('{"rows": []}')
    result = call("report", folder, "--output", "page")
    assert result.exit_code == 0, result.output
    names = {"scaling.md", "scaling_weak.png", "scaling_strong.png", "scaling_split.png"}
    assert {path.name for path in Path("page").iterdir()} == names
    assert all(f"wrote page/{name}" in result.output for name in names)
    page = Path("page/scaling.md").read_text()
    assert page.count("\n## ") == 3
    assert "| 2 | 1 | 0.7078 |" in page
    assert "| 2 | 10000 | 10 | 3000 | 2 | 40 |" in page
    assert "one.json" in page
    assert "other.json" not in page
    assert "The box has 192 planes" in page


def test_what_is_not_known_is_a_dash(measured):
    lonely = row(2, 0.01, None, against=None, link=None, overhead=None)
    lonely["halo"]["hidden"] = None
    file_of(Path("lonely.json"), lonely)
    assert call("report", ".").exit_code == 0
    assert (
        "| 2 | 1 | 0.7078 | 0.7078–0.7078 | – | – | – | – | – |" in Path("scaling.md").read_text()
    )


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

"""The page of measurements of scaling: series, the model, tables, figures, a browser."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.browser import require_readable, with_browser
from support.commands import call

from mpilbm.view.report import scaling_figures as figures
from mpilbm.view.report import scaling_tables as tables
from mpilbm.view.report.scaling_series import (
    chosen,
    fastest,
    labels,
    network,
    prediction,
    read,
    series,
)

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def row(ranks, seconds, efficiency, **more):
    """A cavity of 192^3 in float32, as `mpilbm bench --strong 192` reports it."""
    face = 5 * 192**2 * 4
    sent = [face * ((n > 0) + (n < ranks - 1)) for n in range(ranks)]
    lines = {"latency": 1e-5, "bandwidth": 1.8e9, "points": []}
    case = "[domain]\nperiodic = [false, false, false]"
    glups = 192**3 / seconds / 1e9
    names = {"lattice": "D3Q19", "collision": "mrt", "layout": "ab", "precision": "float32/float32"}
    return (
        names
        | {
            "scaling": "strong",
            "setting": "cavity",
            "size": [192] * 3,
            "ranks": ranks,
            "nodes": 1,
            "time": "2026-01-01T00:00:00",
            "device": "a card on a host",
            "fluid_cells": 192**3,
            "cells": 192**3,
            "glups": glups,
            "spread": [glups, glups],
            "bytes_per_update": 152,
            "copy_bandwidth": 7e10 * ranks,
            "efficiency": efficiency,
            "against": "alone",
            "alone": {"glups": [glups]},
            "overhead": 1e-5,
            "case": case,
            "halo": {"name": "direct", "bytes": sent, "hidden": 0.9},
            "link": lines if ranks > 1 else None,
        }
        | more
    )


def test_required_throughput_is_that_of_table_1():
    """Obrecht et al. 2013: kernel ms, MB and GB/s on 2, 3, 4 and 6 GPUs."""
    one, printed = (
        18.29e-3,
        {
            2: (9.14, 1.47, 0.16),
            3: (6.10, 2.95, 0.48),
            4: (4.57, 4.42, 0.97),
            6: (3.05, 7.37, 2.42),
        },
    )
    rows = [row(1, one, 1.0), *(row(n, one / n / 0.9, 0.9) for n in printed)]
    (found,) = series(rows)
    for cells, (n, numbers) in zip(tables.throughput(found).rows, printed.items(), strict=True):
        assert int(cells[0]) == n
        assert [float(cells[k]) for k in (1, 2, 3)] == pytest.approx(numbers, rel=0.01, abs=0.006)
        assert float(cells[6]) == pytest.approx(float(cells[4]) / 1.8, rel=0.01)


def test_the_model_knows_that_two_ranks_between_walls_have_one_neighbour_each():
    face = 5 * 192**2 * 4
    for ranks in (2, 3):
        model = prediction("strong", [row(ranks, 0.01, 0.9)]).model
        assert model.face_bytes == 2 * face
        assert (model.planes, model.plane_cells, model.copy) == (192, 192**2, 7e10)


def test_a_layout_of_all_cells_updates_solid_ones_too():
    half = {"fluid_cells": 192**3 // 2, "glups": 0.1}
    dense, sparse = (
        prediction("strong", [row(2, 0.01, 0.9, layout=layout, **half)]).model
        for layout in ("ab", "indirect")
    )
    assert dense.plane_cells == 2 * sparse.plane_cells
    assert dense.plane_fluid == sparse.plane_fluid == sparse.plane_cells


# --------------------------------------------------------------------------------------- model


def test_a_model_of_one_node_ends_with_its_ranks():
    rows = [row(4, 0.005, 0.9)]
    assert prediction("strong", rows).ranks == [1, 2, 4]
    rows[0]["nodes"] = 2
    assert prediction("strong", rows).ranks == [1, 2, 4, 8, 16, 32, 64, 128]


def test_a_network_extends_the_model():
    rows = [row(4, 0.005, 0.9)]
    near, far = (
        prediction("strong", rows, network(text)) for text in ("900GB/s,1us", "8Mbit/s,1s")
    )
    assert near.ranks == far.ranks == [1, 2, 4, 8, 16, 32, 64, 128]
    assert near.seconds(8) == near.model.seconds(8)  # the link inside the node is slower
    assert far.seconds(4) == near.seconds(4)
    assert far.at(8).exchange() == 1 + far.model.face_bytes / 1e6
    assert far.seconds(8) > 1 > near.seconds(8)


def test_a_step_that_is_shorter_than_its_model_has_none():
    link = {"latency": 0.1, "bandwidth": 1.8e9, "points": []}
    assert prediction("strong", [row(2, 0.01, 0.9, link=link)]) is None
    assert prediction("strong", [row(2, 0.2, 0.9, link=link)]) is not None


# -------------------------------------------------------------------------------------- series


def test_runs_that_differ_in_ranks_alone_are_one_series():
    other = row(2, 0.01, 0.9)
    other["halo"] = other["halo"] | {"name": "staged"}
    rows = [row(4, 0.005, 0.9), row(2, 0.01, 0.9), row(1, 0.018, 1.0), other]
    rows.append(row(2, 0.01, 0.9, layout="aa"))
    found = series(rows)
    assert sorted([r["ranks"] for r in each.rows] for each in found) == [[1, 2], [1, 2, 4], [2]]
    (whole,) = (each for each in found if len(each.rows) == 3)
    assert (
        whole.name == "D3Q19, mrt, ab, float32/float32, cavity, 192^3 in all, a card, halo direct"
    )
    assert sorted(labels(found)) == ["aa direct", "ab direct", "ab staged"]
    assert [each.halo for each in fastest(found)] == ["direct", "direct"]


def test_a_figure_shows_the_eight_series_with_most_ranks():
    rows = [row(4, 0.005, 0.9, collision=f"c{k}") for k in range(6)]
    rows += [row(2, 0.01, 0.9, collision=f"d{k}") for k in range(6)]
    shown = chosen(series(rows))
    assert len(shown) == 8
    assert {f"c{k}" for k in range(6)} < {each.parts[1] for each in shown}


# --------------------------------------------------------------------------------------- page


def weak_row(efficiency, spread, **more):
    glups = 1.0
    rows = {"scaling": "weak", "size": [192, 192, 384], "glups": glups}
    return row(2, 0.01, efficiency, **(rows | {"spread": [glups * each for each in spread]} | more))


def test_nothing_lies_outside_the_axes():
    rows = [weak_row(1.2, (0.9, 1.1)), weak_row(0.3, (0.8, 1.05), collision="bgk")]
    (panel,) = figures.weak(series(rows)).figure.axes
    low, high = panel.get_ylim()
    assert low < 100 * 0.3 * 0.8
    assert high > 100 * 1.2 * 1.1
    assert low > 0


def test_the_axis_fits_the_points():
    (panel,) = figures.weak(series([weak_row(0.97, (0.99, 1.01), link=None)])).figure.axes
    low, high = panel.get_ylim()
    assert 90 < low < 96
    assert 100 < high < 105


def test_a_model_of_two_numbers_of_ranks_is_drawn():
    panel = SimpleNamespace(plot=lambda *_, **__: None)
    for ranks, wanted in ((64, [64, 128]), (128, [])):
        (each,) = series([row(ranks, 0.002, 0.9, nodes=2)])
        assert figures._model_line(panel, each, {"color": "k"}, lambda _, n: n) == wanted


def test_error_bars_are_those_of_the_repeats():
    (panel,) = figures.weak(series([weak_row(0.9, (0.5, 1.1))])).figure.axes
    (bar,) = panel.containers[0].lines[2]
    assert bar.get_segments()[0][:, 1] == pytest.approx([45, 99])


def file_of(path, *rows):
    known = {"date": "2026-01-01", "mpilbm": "0.1.0", "mpi": "MPI 1", "command": "mpilbm <b>"}
    path.write_text(json.dumps(known | {"scaling": rows[0]["scaling"], "rows": list(rows)}))


@pytest.fixture
def page():
    folder = Path("figures")
    folder.mkdir()
    split = {"edge": 1e-5, "exchange": 2e-6, "bulk": 3e-3, "host": 4e-5}
    file_of(folder / "one.json", row(1, 0.018, 1.0))
    two = [row(2, 0.01, 0.9, split=split), row(2, 0.011, 0.8, split=split)]
    two[1]["halo"] = two[1]["halo"] | {"name": "staged"}
    file_of(folder / "two.json", *two, {"problem": "not defined"})
    weak = [weak_row(0.97, (0.9, 1.1), device=name) for name in ("<i>", r"$\frac$")]
    file_of(folder / "weak.json", *weak)
    (folder / "other.json").write_text('{"rows": []}')
    result = call("report", folder, "--output", "page")
    assert result.exit_code == 0, result.output
    assert "wrote page/scaling.html" in result.output
    assert [path.name for path in Path("page").iterdir()] == ["scaling.html"]
    return Path("page/scaling.html")


def test_the_page_shows_what_was_measured(page):
    text = page.read_text()
    assert text.count("<details>") == 4
    assert text.count("data:image/svg+xml;base64,") == 4
    speeds = "".join(f'<td class="number">{cell}</td>' for cell in ("2", "1", "0.7078"))
    assert speeds in text
    parts = ("2", "10000", "10", "3000", "2", "40")
    assert "".join(f'<td class="number">{cell}</td>' for cell in parts) in text
    assert "The box has 192 planes" in text
    assert "--network 50GB/s,2us" in text
    assert "one.json" in text
    assert "other.json" not in text
    assert "mpilbm &lt;b&gt;" in text
    assert "&lt;i&gt;" in text
    assert "<i>" not in text


def test_what_is_not_known_is_a_dash():
    lonely = row(2, 0.01, None, against=None, link=None, overhead=None)
    lonely["halo"]["hidden"] = None
    file_of(Path("lonely.json"), lonely)
    assert call("report", ".").exit_code == 0
    cells = ("2", "1", "0.7078", "0.7078–0.7078", "–", "–", "–", "–", "–")
    row_text = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    assert row_text in Path("scaling.html").read_text()


@with_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1400])
def test_a_browser_shows_the_page(page, tmp_path, width, dark):
    require_readable(page, tmp_path, width, dark, images=4)


def test_files_of_an_earlier_version_have_the_present_names_of_precisions(tmp_path):
    rows = [row(1, 0.01, 1.0, precision=name) for name in ("single", "float32/float32")]
    (tmp_path / "strong.json").write_text(json.dumps({"scaling": "strong", "rows": rows}))
    assert {each["precision"] for each in read(tmp_path)} == {"float32/float32"}

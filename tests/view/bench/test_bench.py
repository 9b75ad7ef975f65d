"""`mpilbm bench`: figures that agree with each other, boxes, and what it says of bad input.

More than 20 s: each figure takes some passes over a box, and some are those of new processes.
"""

import errno
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from support import ROOT
from support.commands import CASE, call, refused

from mpilbm.case.case import parse_case
from mpilbm.core import registry
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import Serial
from mpilbm.solver import memory_plan
from mpilbm.view.bench import SETTINGS, box, rock, table, tiled_rock, variants
from mpilbm.view.bench.measure import SECONDS, measure, worth_timing

SMALL = ("--size", "12", "--steps", "2")


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cavity.toml").write_text(CASE)
    return "cavity.toml"


def bench(*arguments):
    """Lines that are printed, and the JSON."""
    result = call("bench", *arguments, "--json", "figures.json")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines(), json.loads(Path("figures.json").read_text())


def cells(lines):
    """The rows of the table, without its head."""
    table = [line.split("|")[1:-1] for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


# --------------------------------------------------------------------------------- figures


def test_a_repeat_of_steps_that_are_enqueued_many_at_a_time(monkeypatch):
    def seconds(solver, comm, steps):
        return 6e-5 * (steps % 8) + 6e-6 * (steps - steps % 8)

    monkeypatch.setattr("mpilbm.view.bench.measure.timed", seconds)
    steps = worth_timing(None, Serial())
    assert seconds(None, None, steps) == pytest.approx(SECONDS, rel=0.05)


@pytest.mark.parametrize("setting", SETTINGS)
def test_figures_agree(case, setting):
    lines, found = bench(*SMALL, "--setting", setting, "--lattice", "D2Q9")
    (row,) = found["rows"]
    assert (row["size"], row["cells"], row["ranks"], row["steps"]) == ([12, 12], 144, 1, 2)
    rates = sorted(row["fluid_cells"] * 2 / seconds / 1e9 for seconds in row["seconds"])
    assert len(rates) == 5
    assert row["glups"] == pytest.approx(rates[2])
    assert row["spread"] == pytest.approx([rates[0], rates[4]])
    assert row["bytes_per_update"] == 2 * 9 * 4
    assert row["achieved"] == pytest.approx(row["glups"] * 1e9 * 72)
    assert row["share"] == pytest.approx(row["achieved"] / row["copy_bandwidth"])
    (shown,) = cells(lines)
    assert shown[:7] == ["D2Q9", "trt", "ab", "float32/float32", setting, "12^2", "1"]
    assert float(shown[7]) == pytest.approx(1e3 * row["glups"], rel=6e-3)
    assert float(shown[9]) == 72
    assert float(shown[12]) == pytest.approx(row["share"], abs=6e-3)
    assert float(shown[13]) == pytest.approx(1e6 * row["split"]["host"], rel=6e-3)
    assert set(row["split"]) == {"edge", "exchange", "bulk", "host"}
    assert row["split"]["bulk"] > 0


@pytest.mark.parametrize(
    ("layout", "precision", "width"),
    [
        ("ab", "float32/float32", 4),
        ("aa", "float32/float16", 2),
        ("esopull", "float64/float32", 4),
        ("ab", "float64/float64", 8),
    ],
)
def test_bytes_are_those_of_all_populations_once(layout, precision, width):
    tables = box("periodic", (5, 6), "D2Q9", "trt", layout, precision)
    assert measure(parse_case(tables), Serial(), steps=2).bytes_per_update == 2 * 9 * width


def test_only_fluid_cells_count(case):
    lines, found = bench(
        *SMALL[2:],
        "--size",
        "16x20",
        "--lattice",
        "D2Q9",
        "--setting",
        "porous",
        "--porosity",
        "0.5",
    )
    (row,) = found["rows"]
    solid = tiled_rock((20, 16), 0.5)
    assert row["fluid_cells"] == np.count_nonzero(~solid) <= 160
    assert row["cells"] == 320
    assert row["rock"]["porosity"] == 0.5
    assert any(f"{100 * row['fluid_cells'] / 320:.0f} % of the box" in line for line in lines)


def plain_rock(shape, radius, porosity, seed):
    """The rock of boxes.rock, from distances in the whole box."""
    random, solid = np.random.default_rng(seed), np.zeros(shape, bool)
    centres = np.ogrid[tuple(slice(0.5, n) for n in shape)]
    while 1 - solid.mean() > porosity:
        apart = [
            (centre - at + n / 2) % n - n / 2
            for centre, at, n in zip(centres, random.uniform(0, shape), shape, strict=True)
        ]
        solid |= sum(distance**2 for distance in apart) < radius**2
    return solid


@pytest.mark.parametrize(
    "rocks", [((33, 20, 17), 3.3, 0.4, 2), ((40, 31), 4.0, 0.5, 7), ((5, 4, 6), 2.4, 0.2, 1)]
)
def test_a_rock_is_that_of_whole_distances(rocks):
    assert np.array_equal(rock(*rocks), plain_rock(*rocks))


def test_a_rock_closes_on_itself_and_repeats():
    for seed in range(20):  # one disc, wherever it lies, is never cut
        assert np.count_nonzero(rock((40, 30), 6, 0.99, seed)) == pytest.approx(36 * np.pi, rel=0.1)
    assert 0.4 <= rock((40, 30), 6, 0.6).mean() < 0.6
    assert np.array_equal(rock((40, 30), 6, 0.6), rock((40, 30), 6, 0.6))
    tiles = tiled_rock((128, 64), 0.6)
    assert np.array_equal(tiles[:64], tiles[64:])


def test_the_steps_of_a_repeat_are_even_and_take_a_while():
    speed = measure(parse_case(box("periodic", (16, 16), "D2Q9")), Serial())
    assert speed.steps % 2 == 0
    assert min(speed.seconds) > 0.02


def test_json_holds_all_to_repeat_it(case, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mpilbm", "bench", "--size", "12"])
    _, found = bench(
        *SMALL, "--setting", "cavity", "--precision", "float64/float64", "--backend", "cpu"
    )
    assert found["command"] == "mpilbm bench --size 12"
    assert {"date", "mpilbm", "python", "numpy", "host", "ranks"} <= found.keys()
    (row,) = found["rows"]
    assert {"device", "compiler", "backend", "halo", "steps", "seconds"} <= row.keys()
    again = measure(parse_case(variants.tomllib.loads(row["case"])), Serial(), row["steps"])
    same = ("cells", "fluid_cells", "bytes_per_update", "compiler", "device", "steps", "layout")
    assert {key: asdict(again)[key] for key in same} == {key: row[key] for key in same}


# -------------------------------------------------------------------------------- variants


def test_all_means_every_name_and_a_refusal_does_not_stop_the_rest(case):
    options = ("--layout", "all", "--lattice", "D3Q15,D2Q9", "--size", "8x12")
    lines, found = bench(*SMALL[2:], *options, "--setting", "periodic")
    every = set(registry.names("layouts")) - {"auto"}
    assert {row["layout"] for row in found["rows"]} == every
    refusals = [row["problem"] for row in found["rows"] if row["lattice"] == "D3Q15"]
    assert all("cannot run: domain.size: found 2" in problem for problem in refusals)
    for layout in every:
        start = f"D3Q15 trt {layout} float32/float32 periodic 8x12: cannot run"
        assert sum(line.startswith(start) for line in lines) == 1
    assert {"ab", "aa", "esopull"} <= {row[2] for row in cells(lines)}


def test_a_row_names_the_layout_that_auto_chose(case):
    lines, found = bench(
        *SMALL[2:],
        "--layout",
        "auto",
        "--size",
        "8x12",
        "--lattice",
        "D2Q9",
        "--setting",
        "periodic",
        "--backend",
        "cpu",
    )
    assert [row["layout"] for row in found["rows"]] == [row[2] for row in cells(lines)] == ["aa"]


def test_a_case_keeps_what_no_option_changes(case):
    result = call(
        "bench",
        case,
        "--layout",
        "aa,ab",
        "--precision",
        "mixed",
        "--steps",
        "2",
        "--set",
        "domain.size=[9, 7]",
        "--json",
        "figures.json",
    )
    note = "note: --precision: mixed is the earlier name of float64/float32"
    assert result.stderr.splitlines().count(note) == 1
    lines, found = result.stdout.splitlines(), json.loads(Path("figures.json").read_text())
    assert [row["layout"] for row in found["rows"]] == ["aa", "ab"]
    assert all(row["setting"] == case and row["cells"] == 63 for row in found["rows"])
    assert 'storage = "float32"' in found["rows"][0]["case"]
    assert "reynolds = 10" in found["rows"][0]["case"]
    assert [row[3] for row in cells(lines)] == ["float64/float32", "float64/float32"]


def test_keys_of_the_standard_boxes_can_be_overridden(case):
    _, found = bench(*SMALL, "--setting", "periodic", "--set", "collision.magic=0.25")
    assert "magic = 0.25" in found["rows"][0]["case"]


def test_a_backend_keeps_its_options(case):
    arguments = (*SMALL, "--setting", "periodic", "--set", "backend.threads=2")
    _, found = bench(*arguments, "--backend", "cpu")
    assert ", 2 threads per rank, " in found["rows"][0]["device"]
    kept = variants.Series((), backend="cpu")._backend
    assert kept({"name": "cpu", "threads": 3}) == {"backend": {"name": "cpu", "threads": 3}}
    assert kept({"name": "cuda", "device": 1}) == {"backend": {"name": "cpu"}}


def test_a_usual_box_shrinks_until_it_fits(monkeypatch, capsys):
    def need(device, case, slab, lists=(), fluid=None):
        if case.domain.size[0] > 40:
            raise CaseError("too large")

    monkeypatch.setattr(memory_plan, "require", need)
    variant = variants.Variant("D2Q9", "bgk", "ab", "float32/float32", "periodic", None)
    (row,) = variants.Series((variant,), backend="cpu", steps=2).rows(Serial())
    assert row["size"] == [32, 32]
    assert "2048 does not fit" in capsys.readouterr().err


def test_a_flow_that_blows_up_does_not_count(case):
    wild = ("--set", "initial.u=['0.3*sin(2*pi*y/ny)', '0.3*sin(2*pi*x/nx)']")
    arguments = ("--lattice", "D2Q9", "--setting", "periodic", "--size", "7", "--steps", "400")
    result = call("bench", *arguments, *wild, "--set", "fluid.viscosity=1e-5")
    assert result.exit_code == 2
    assert (
        "D2Q9 trt ab float32/float32 periodic 7^2: discarded: the flow is not finite"
        in result.output
    )
    assert "|" not in result.output


# --------------------------------------------------------------------------------- starts


def test_the_first_start_makes_all_kernels_and_the_next_one_none(monkeypatch):
    kept, seconds = [], table._seconds

    def entries(case, folder):
        taken = seconds(case, folder)
        kept.append({path.name: path.stat().st_mtime_ns for path in Path(folder).rglob("*.*")})
        return taken

    monkeypatch.setattr(table, "WARM_STARTS", 1)
    monkeypatch.setattr(table, "_seconds", entries)
    tables = box("cavity", (8, 8), "D2Q9", "bgk") | {"run": {"steps": 1}}
    found = table.starts(tables | {"backend": {"name": "cpu"}})
    cold, warm = ({n: t for n, t in each.items() if n.endswith(".so")} for each in kept)
    assert cold
    assert warm == cold
    assert min(found["cold"], found["warm"]) > 0
    assert "kernels by" in found["device"]


def test_start_times_are_printed_in_a_table(case, monkeypatch):
    times = {"cold": 3.0, "warm": 0.5, "device": "a core"}
    monkeypatch.setattr(table, "starts", lambda tables: times)
    lines, found = bench("--startup", "--lattice", "D2Q9")
    assert [row["collision"] for row in found["rows"]] == ["bgk", "trt"]
    assert cells(lines)[0] == ["D2Q9", "bgk", "ab", "float32/float32", "3.00", "0.50"]


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--layout", "ac"), ("--layout 'ac'", "esopull", "did you mean 'ab'")),
        (("--lattice", "D3Q19,d2q9"), ("--lattice 'd2q9'", "D2Q9")),
        (
            ("--precision", "float32"),
            ("--precision 'float32'", "float32/float32", "float32/float16"),
        ),
        (("--setting", "pipe"), ("--setting 'pipe'", "porous")),
        (("--size", "12x"), ("--size", "'12x'", "128x64x32")),
        (("--size", "0"), ("--size", "'0'")),
        (("--size", "1x2x3x4"), ("--size", "1x2x3x4")),
        (("--porosity", "1"), ("--porosity", "0<x<1")),
        (("--repeats", "4"), ("--repeats", "x>=5")),
        (("--backend", "gpu"), ("backend", "'gpu'", "cuda")),
        (
            ("--json", "no/folder.json"),
            ("--json no/folder.json", "there is no folder no; name a file"),
        ),
        (("--set", "nonsense"), ("--set nonsense", "key=value")),
        (("--set", "fluid.viscositi=1"), ("fluid", "viscositi", "viscosity")),
        (("cavity.toml", "--size", "12"), ("--size", "cavity.toml", "domain.size")),
        (("cavity.toml", "--setting", "porous"), ("--setting", "cavity.toml")),
        (("cavity.toml", "--set", "run.step=1"), ("cavity.toml", "step")),
        (("cavity.toml", "--startup"), ("--startup", "leave out CASE")),
        (("--startup", "--size", "12"), ("--startup", "leave out size")),
        (("nowhere.toml",), ("nowhere.toml", "mpilbm new")),
    ],
)
def test_bad_options(case, arguments, words):
    output = refused("bench", *arguments)
    for word in words:
        assert word in output


# ----------------------------------------------------------------------------------- tools


def test_gpu_check_measures_with_it(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--backend", "cpu", "--no-check", "--size", "8", "--steps", "2", "--rows", "1"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/gpu_check"), *options, "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "D3Q19 periodic ab float32/float32 8^3:" in done.stdout
    (row,) = json.loads(file.read_text())["rows"]
    assert row["copy_share"] == pytest.approx(row["glups_one"] * 152 / row["bandwidth"] / 1e3)


def test_figures_are_shown_even_where_their_file_cannot_be_written(tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    result = call("bench", *SMALL, "--json", "full.json")
    assert result.exit_code == 5, result.output
    assert "| D3Q19 |" in result.output
    assert "full.json: No space left on device; the figures are printed above" in result.output

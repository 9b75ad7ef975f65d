"""`mpilbm precision`: rows, problems, the recommendation and bad input."""

import json

import pytest
from click.testing import CliRunner
from support.outputs_cases import make_case

from mpilbm.backends.cpu import CpuDevice
from mpilbm.cli import cli
from mpilbm.run.preflight import layout_choice
from mpilbm.view.bench import comparison, measure
from mpilbm.view.bench.precision import recommend

BODY = {
    "label": "post",
    "shape": {"name": "cylinder", "centre": [8, 8], "radius": 3},
    "boundary": {"name": "bounce_back"},
}
FORCES = {"name": "body_forces", "every": 5}
FLOW = {
    "force": {"name": "guo", "value": [1e-4, 0]},
    "body": [BODY],
    "output": [FORCES, {"name": "snapshot", "every": 1}],
}


@pytest.fixture(autouse=True)
def short_timings(monkeypatch):
    monkeypatch.setattr(measure, "SECONDS", 0.02)


def compare(tmp_path, *options, **more):
    """The figures of a small flow around a post, or the output of a command that fails."""
    case = make_case((16, 16), run={"steps": 50}, **(FLOW | more))
    (tmp_path / "case.toml").write_text(case.toml)
    command = ["precision", str(tmp_path / "case.toml"), "--json", str(tmp_path / "rows.json")]
    done = CliRunner().invoke(cli, [*command, *options])
    if done.exit_code:
        return done.exit_code, done.output
    return json.loads((tmp_path / "rows.json").read_text()), done.output


def test_number_formats(tmp_path):
    found, text = compare(tmp_path)
    rows = {(row["compute"], row["storage"]): row for row in found["rows"]}
    half, single, double = (
        rows[f"float{c}", f"float{s}"] for c, s in ((32, 16), (32, 32), (64, 64))
    )
    assert single["own"]
    assert set(double["end"].values()) == {0.0}
    for name in ("u", "rho", "forces", "energy"):
        assert 0 < single["end"][name] < min(1e-4, half["end"][name] / 5), name
    assert half["bytes"] < single["bytes"] < double["bytes"]
    assert "moments" in rows["float32", "mixed"]["problem"]
    assert found["steps"] == 50
    assert "precision: use float" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.toml", "rows.json"]


def test_layouts_and_collisions(tmp_path):
    found, text = compare(tmp_path, "--compare", "layout,collision", "--steps", "20")
    rows = [row for row in found["rows"] if "problem" not in row]
    layouts = {row["layout"]: row for row in rows if row["kind"] == "layout"}
    assert {"ab", "aa", "esopull", "indirect"} <= set(layouts)
    assert all(row["end"]["u"] < 1e-4 for row in layouts.values())
    collisions = {row["collision"]: row for row in rows if row["kind"] == "collision"}
    assert collisions["trt"]["end"]["u"] > 10 * collisions["bgk"]["end"]["u"] > 0
    assert "no recommendation" in text
    cumulant = next(row for row in found["rows"] if row["collision"] == "cumulant")
    assert "D3Q27" in cumulant["problem"]


def test_auto_chooses_again_for_other_collisions(tmp_path, monkeypatch):
    """Where it took `moments`, which most collisions may not use."""
    monkeypatch.setattr(CpuDevice, "sweeps", True)
    monkeypatch.setattr(layout_choice, "NARROW", 0)
    monkeypatch.setattr(comparison, "names", lambda kind: ["bgk", "regularized"])
    options = "--compare", "collision", "--steps", "20"
    more = {"collision": {"name": "regularized"}, "body": [], "output": []}
    found, _ = compare(tmp_path, *options, **more)
    rows = {row["collision"]: row for row in found["rows"]}
    assert {name: row["layout"] for name, row in rows.items()} == {
        "bgk": "aa",
        "regularized": "moments",
    }
    assert rows["regularized"]["own"]
    assert rows["bgk"]["end"]["u"] < 0.1


def test_an_unstable_variant_is_a_row(tmp_path, monkeypatch):
    from mpilbm.core.errors import NonFiniteError
    from mpilbm.view.bench import comparison as module

    run = module.Comparison._run

    def fail(self, tables, results):
        if tables.get("precision", {}).get("storage") == "float16":
            raise NonFiniteError("not finite", 17)
        return run(self, tables, results)

    monkeypatch.setattr(module.Comparison, "_run", fail)
    found, text = compare(tmp_path, "--steps", "4")
    assert found["rows"][0]["problem"] == "became unstable: not finite at step 17"
    assert "float32/float16: became unstable" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compare", "lattice"], "'lattice' cannot be compared; allowed: precision, layout"),
        (["--steps", "0"], "not in the range"),
        (["--tolerance", "nan"], "not a finite number"),
        (["--set", "fluid.viscosity=-1"], "viscosity"),
        (["--json", "missing/rows.json"], "there is no folder"),
    ],
)
def test_bad_input(tmp_path, options, message):
    code, text = compare(tmp_path, *options)
    assert (code, message in text) == (2, True), text


def row(layout, glups, error, size=100, own=False, half=None):
    return {
        "kind": "layout",
        "layout": layout,
        "own": own,
        "glups": glups,
        "bytes": size,
        "half": {"u": half or error},
        "end": {"u": error},
    }


def test_the_fastest_accurate_variant_is_recommended():
    rows = [row("ab", 1.0, 1e-6, own=True), row("aa", 2.0, 1e-5), row("half", 4.0, 1e-2)]
    (text,) = recommend("layout", rows, 1e-3, 1.0)
    assert text.startswith("layout: use aa. It deviates from float64 by at most 1e-05 (u)")
    assert "2.00 times the speed" in text
    assert "half is faster, but deviates by 0.01 (u)" in text


def test_among_equally_fast_ones_the_smallest_is_recommended():
    rows = [row("ab", 1.0, 1e-6, 200), row("aa", 0.97, 1e-6, 100), row("slow", 0.5, 1e-6, 10)]
    assert recommend("layout", rows, 1e-3, 1.0)[0].startswith("layout: use aa.")


def test_without_an_accurate_variant():
    (text,) = recommend("layout", [row("ab", 1.0, 0.1)], 1e-3, 1.0)
    assert "no variant deviates from float64 by less than the tolerance 0.001" in text
    assert recommend("layout", [{"problem": "no"}], 1e-3, 1.0) == [
        "layout: nothing could be measured"
    ]


def test_a_growing_deviation_of_a_part_of_the_case():
    rows = [row("ab", 1.0, 1e-4, half=2e-5)]
    assert "grew by a factor of 5" in recommend("layout", rows, 1e-3, 0.1)[1]
    assert len(recommend("layout", rows, 1e-3, 1.0)) == 1

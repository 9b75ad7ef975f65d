"""A restart does not continue a file with rows, or files of a series, of another meaning.

More than 20 s: each output has runs and restarts.
"""

import json
import shutil

import pytest
from support.every_output import case_with, changed, output_of
from support.outputs_cases import make_case
from support.runs import run_case

import mpilbm
from mpilbm.core.errors import FileSystemError
from mpilbm.core.files.file_digest import sealed, unsealed
from mpilbm.core.registry import find, names
from mpilbm.outputs.core.tables import read
from mpilbm.outputs.core.writers import of_case
from mpilbm.storage.directory import DEFINITIONS, owned

BEFORE = "_before_000000004"


def free_keys(name):
    return {key for cls in find("outputs", name).__mro__ for key in vars(cls).get("free", ())}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", names("outputs"))
def test_every_key_but_the_free_ones_is_a_part_of_the_definition(name):
    def definition(output):
        return of_case(case_with(output))

    output = output_of(name)
    for key, value in changed(output):
        same = definition(output | {key: value}) == definition(output)
        assert same == (key in free_keys(name) or name == "checkpoint"), key


@pytest.mark.parametrize("name", names("outputs"))
def test_a_restart_with_another_definition_sets_the_files_of_an_output_aside(name, tmp_path):
    output, base = output_of(name), tmp_path / "base"
    run_case(case_with(output), base)
    before = contents(base)
    own = {file for file in before if not file.startswith(("checkpoint_", "summary", "outputs"))}
    others, free = dict(changed(output)), free_keys(name)
    same = output | {key: value for key, value in others.items() if key in free}
    other = next(({key: value} for key, value in others.items() if key not in free), None)
    for changes, aside in [(same, set()), (other, own)][: 1 + (other is not None)]:
        folder = tmp_path / f"{len(aside)}"
        shutil.copytree(base, folder)
        run_case(case_with(output | changes), folder, restart="auto")
        after = contents(folder)
        assert {file.replace(BEFORE, "") for file in after if BEFORE in file} == aside
        for file in aside:
            if not file.endswith(".series"):
                first, dot, ending = file.partition(".")
                stem, step = (first[:-10], first[-10:]) if first[-9:].isdigit() else (first, "")
                assert after[f"{stem}{BEFORE}{step}{dot}{ending}"] == before[file]
        for file in () if aside else own:
            assert file.endswith(".h5") or after[file] == before[file]
        assert {path.name for path in owned(folder)} == after.keys()
        assert [str(each.table(n)) for each, n in tables(folder)] == [
            str(each.table(n)) for each, n in tables(base)] or aside  # fmt: skip


def tables(folder):
    run = mpilbm.open_run(folder, verify=True)
    return [(run, name) for name in run.tables]


def probe(**more):
    return {"name": "probe", "every": 2, "points": [[1.5, 1.5]]} | more


def flow(*outputs, steps=4, **more):
    checkpoint = {"name": "checkpoint", "every": 4}
    initial = {"u": ["0.03*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}
    run = {"steps": steps} | more.pop("run", {})
    return make_case((5, 6), [*outputs, checkpoint], initial=initial, run=run, **more)


def test_a_moved_point_begins_a_new_table_and_the_row_says_why(tmp_path, capsys):
    """Repeatedly from the same step: no table that was set aside is replaced."""
    both = probe(), probe(format="csv")
    moved = [each | {"points": [[3.5, 2.5]]} for each in both]
    run_case(flow(*both), tmp_path)
    first = contents(tmp_path)
    run_case(flow(*moved, steps=6), tmp_path, restart="auto")
    aside = tmp_path / "probe_0_before_000000004.h5"
    expected = (
        f"probe_0.h5: the output has other points and starts again; its previous content: {aside}"
    )
    assert expected in capsys.readouterr().err.replace("\n", " ")
    assert read(aside)["step"].tolist() == [2, 4]
    assert read(tmp_path / "probe_0.h5")["step"].tolist() == [6]
    run_case(flow(*both, steps=8), tmp_path, restart=tmp_path / "checkpoint_000000004.h5")
    last = contents(tmp_path)
    assert last["probe_1_before_000000004.csv"] == first["probe_1.csv"]
    assert last["probe_1_before_000000004_2.csv"].splitlines()[1].startswith(b"6,")
    run = mpilbm.open_run(tmp_path, verify=True)
    assert run.tables == ("probe_0", "probe_1")
    assert run.table("probe_1")["step"].tolist() == [6, 8]


def test_files_of_a_run_that_was_killed_before_its_first_checkpoint_are_set_aside(tmp_path):
    """Also if it starts again from step 0."""
    line = {"name": "line", "every": 1, "from": [0, 1], "to": [5, 1]}
    run_case(flow(line), tmp_path)
    (tmp_path / "checkpoint_000000004.h5").unlink()
    run_case(flow(line | {"from": [0, 2], "to": [5, 2], "every": 3}), tmp_path, restart="auto")
    run = mpilbm.open_run(tmp_path, verify=True)
    assert run.part("line_0").steps.tolist() == [3, 4]
    assert run.part("line_0_before_000000000").steps.tolist() == [1, 2, 3, 4]


def test_tuples_in_a_definition_are_those_of_the_file(tmp_path, monkeypatch):
    """As a plug-in may return them."""
    monkeypatch.setattr(find("outputs", "probe"), "definition", lambda *_: {"at": (1.5, 1.5)})
    run_case(flow(probe()), tmp_path)
    run_case(flow(probe(), steps=6), tmp_path, restart="auto")
    assert read(tmp_path / "probe_0.h5")["step"].tolist() == [2, 4, 6]


def test_points_of_a_file_are_compared_by_their_values(tmp_path):
    points = tmp_path / "points.csv"
    points.write_text("x,y\n1.5,1.5\n")
    folder, given = tmp_path / "out", {"name": "probe", "every": 2, "file": str(points)}
    run_case(flow(given), folder)
    run_case(flow(probe(), steps=6), folder, restart="auto")
    assert read(folder / "probe_0.h5")["step"].tolist() == [2, 4, 6]
    points.write_text("x,y\n1.5,1.5\n2.5,1.5\n")
    run_case(flow(given, steps=8), folder, restart="auto")
    assert read(folder / "probe_0.h5")["step"].tolist() == [8]


def test_a_restart_in_a_folder_of_an_earlier_version_compares_the_case_of_the_checkpoint(tmp_path):
    """Such a folder has no definitions and no digests."""
    both = probe(), probe(format="csv", interpolation="nearest"), {"name": "monitor", "every": 1}
    run_case(flow(*both), tmp_path)
    for name in (DEFINITIONS, "probe_1.csv.digests", "monitor.csv.digests"):
        (tmp_path / name).unlink()
    nearest = probe(interpolation="nearest")
    run_case(flow(nearest, *both[1:], steps=6), tmp_path, restart="auto")
    assert (tmp_path / "probe_0_before_000000004.h5").exists()
    run = mpilbm.open_run(tmp_path, verify=True)
    assert run.table("probe_0")["step"].tolist() == [6]
    assert run.table("probe_1")["step"].tolist() == [2, 4, 6]
    assert run.table("monitor")["step"].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_the_residuals_of_another_period_are_set_aside(tmp_path):
    run_case(flow(run={"steady": {"every": 1, "tolerance": 1e-9}}), tmp_path)
    loose = {"steady": {"every": 1, "tolerance": 1e-8}}
    run_case(flow(steps=6, run=loose), tmp_path, restart="auto")
    assert not list(tmp_path.glob("*_before_*"))
    run_case(
        flow(steps=8, run={"steady": {"every": 2, "tolerance": 1e-8}}), tmp_path, restart="auto"
    )
    assert [path.name for path in tmp_path.glob("*_before_*.csv")] == [
        "steady_before_000000006.csv"
    ]


def test_sums_of_another_definition_are_not_continued(tmp_path, capsys):
    def spectra(lines):
        return {"name": "line_spectra", "every": 2, "average": ["x", "y"], "lines": lines}

    def cube(lines, steps):
        outputs = [spectra(lines), {"name": "checkpoint", "every": 4}]
        return make_case((6, 6, 6), outputs, run={"steps": steps})

    run_case(cube(["x"], 4), tmp_path)
    run_case(cube(["y"], 6), tmp_path, restart="auto")
    assert "holds no sums for line_spectra.0" in capsys.readouterr().err
    assert (tmp_path / "line_spectra_0_before_000000004_000000004.h5").exists()


def test_damaged_definitions_are_refused(tmp_path):
    run_case(flow(probe()), tmp_path)
    path = tmp_path / DEFINITIONS
    assert json.loads(path.read_text())["probe_0.h5, probe_0.csv"] == {"points": [[1.5, 1.5]]}
    path.write_text(path.read_text().replace("1.5", "1.25"))
    with pytest.raises(FileSystemError, match=r"outputs.json: is damaged: its checksum is wrong"):
        run_case(flow(probe(), steps=6), tmp_path, restart="auto")
    path.unlink()
    run_case(flow(probe(), steps=6), tmp_path, restart="auto")


def test_a_renamed_key_is_no_other_definition(tmp_path, monkeypatch):
    """Neither one that says when a file is written, nor one that says what it contains."""
    sums = {"name": "statistics", "every": 1, "average": ["x"]}
    run_case(flow(probe(), sums | {"start": 2}), tmp_path)
    path = tmp_path / DEFINITIONS
    stored = unsealed(path.read_text("utf-8"))
    for definition in stored.values():
        if "points" in definition:
            definition["sites"] = definition.pop("points")
    path.write_text(sealed(stored), "utf-8")
    monkeypatch.setattr(find("outputs", "probe"), "earlier", {"sites": "points"})
    run_case(flow(probe(), sums | {"begin": 2}, steps=6), tmp_path, restart="auto")
    assert not [path for path in tmp_path.iterdir() if "_before_" in path.name]
    assert mpilbm.open_run(tmp_path).table("probe_0")["step"].tolist() == [2, 4, 6]

"""`mpilbm new --list` and `--template`: every shipped case is a template, and a wheel has it."""

import tomllib

import numpy as np
import pytest
from support import ROOT
from support.commands import call, refused

from mpilbm.case import new_case
from mpilbm.case.case import load_case

NAMES = [path.stem for path in sorted(ROOT.glob("cases/*.toml"))]


def test_the_list_has_a_line_for_each_case():
    lines = call("new", "--list").output.splitlines()
    assert [line.split()[0] for line in lines] == ["cavity", "external", "internal", *NAMES]
    assert "rock                Permeability of a rock" in lines


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_the_case(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("new", "mine", "--template", name)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "mine.toml").read_text() == (ROOT / "cases" / f"{name}.toml").read_text()
    for file in new_case.missing((tmp_path / "mine.toml").read_text()):
        np.save(tmp_path / file, np.eye(3)[None])
    assert load_case(tmp_path / "mine.toml").title


def test_files_that_a_case_reads_are_copied(tmp_path, monkeypatch):
    """With their folders; files that exist are kept."""
    folder, new = tmp_path / "cases", tmp_path / "new"
    (folder / "tables").mkdir(parents=True)
    new.mkdir()
    (folder / "tables/u.csv").write_text("t,u\n0,0\n")
    (folder / "solid.npy").write_bytes(b"1")
    (new / "solid.npy").write_bytes(b"2")
    body = '[[body]]\nmask = "solid.npy"\n[[body]]\nmask = "rock.h5:solid"\n'
    body += '[[body]]\nshape = {name = "union", of = [{name = "voxels", file = "scan.raw"}]}\n'
    text = f'title = "T"\n[[boundary]]\nvelocity = "tables/u.csv"\n{body}'
    (folder / "own.toml").write_text(text)
    monkeypatch.setattr(new_case, "FOLDER", folder)
    new_case.titles.cache_clear()
    monkeypatch.chdir(new)
    output = call("new", "mine", "--template", "own").output
    new_case.titles.cache_clear()
    assert "wrote mine.toml; the comment on top states how to make rock.h5, scan.raw; try" in output
    assert (new / "tables/u.csv").read_text() == "t,u\n0,0\n"
    assert (new / "solid.npy").read_bytes() == b"2"


def test_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "did you mean 'rock'" in refused("new", "a", "--template", "roc")
    assert "mpilbm new --list" in refused("new", "a", "--template", "zzzz")
    assert "applies to the template cavity" in refused(
        "new", "a", "--template", "rock", "--dimensions", "3"
    )
    assert "the name of the new case is missing" in refused("new")
    assert not list(tmp_path.iterdir())


def test_a_wheel_contains_the_cases():
    """The cases are data of the package, through the link mpilbm/case/new/cases."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = settings["tool"]["setuptools"]["package-data"]["mpilbm"]
    package = ROOT / "mpilbm"
    found = {path.relative_to(package) for pattern in data for path in package.glob(pattern)}
    assert {f"case/new/cases/{name}.toml" for name in NAMES} <= set(map(str, found))
    for name in NAMES:
        for path in new_case.inputs((ROOT / "cases" / f"{name}.toml").read_text()):
            assert path.suffix == ".npy" or f"case/new/cases/{path}" in map(str, found)

"""The chapter on Python is that of the notebook and the docstrings, and the notebook runs."""

import copy
import json
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

import mpilbm
from mpilbm.run.simulation import Simulation

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from chapters import python as python_chapter

AGAIN = "write it again: tools/manual"


def test_the_chapter_is_what_its_sources_give():
    assert python_chapter.FILE.read_text(encoding="utf-8") == python_chapter.chapter(), AGAIN
    assert python_chapter.PICTURE.read_bytes() == python_chapter.picture(), AGAIN


def test_the_chapter_describes_all_public_names():
    text = python_chapter.chapter()
    public = [name for name in vars(Simulation) if not name.startswith("_")]
    for name in set(public) - set(python_chapter.INTERNAL):
        assert f"\n### sim.{name}\n" in text, name
    for name in set(mpilbm.__all__) - {"Case"}:
        assert f"`{name}`" in text or f"\n### {name}\n" in text, name


@pytest.mark.timeout(240)
def test_the_notebook_runs_and_has_the_drag_that_it_shows(tmp_path, monkeypatch):
    """With the compiler and the flags of the package, since its flow has many steps."""
    monkeypatch.delenv("CC", raising=False)
    shown = nbformat.read(python_chapter.NOTEBOOK, as_version=4)
    nbformat.validate(shown)
    run = copy.deepcopy(shown)
    nbclient.NotebookClient(
        run, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    printed = [
        "".join(output["text"])
        for book in (shown, run)
        for cell in book.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    ]
    assert printed == ["drag 5.59, lift 0.0108\n"] * 2
    assert list(tmp_path.iterdir()) == []


def test_the_notebook_holds_nothing_of_the_machine_that_ran_it():
    text = json.dumps(json.loads(python_chapter.NOTEBOOK.read_text()))
    assert "execution" not in text.replace("execution_count", "")
    assert "Warning" not in text
    assert len(text) < 100_000

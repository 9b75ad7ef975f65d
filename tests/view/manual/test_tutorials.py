"""Tutorials of the manual: their cases run, their scripts are Python, their pictures are small."""

import ast
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from mpilbm.case.case import parse_case
from mpilbm.run.preflight.plan import plan

MANUAL = Path(__file__).parents[3] / "mpilbm/view/manual"
TUTORIALS = {path.stem: path.read_text() for path in sorted(MANUAL.glob("tutorial-*.md"))}
BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.M | re.S)
BLOCKS = {
    (chapter, name): text
    for chapter, whole in TUTORIALS.items()
    for _, name, text in BLOCK.findall(whole)
}
CASES = [key for key in BLOCKS if key[1].endswith(".toml")]
SCRIPTS = [key for key in BLOCKS if key[1].endswith(".py")]
BYTES = 150_000  # of a picture


@pytest.mark.parametrize("key", CASES, ids="/".join)
def test_a_case_would_run(key, tmp_path):
    tables = tomllib.loads(BLOCKS[key])
    if any(body["shape"]["name"] == "voxels" for body in tables.get("body", ())):
        tables["domain"]["size"] = [8, 8, 8]
        mask = np.zeros((8, 8, 8), np.uint8)
        mask[2:4, 2:4, 2:4] = 1  # in place of the rock that the chapter's script makes
        np.save(tmp_path / "rock.npy", mask)
    assert parse_case(tables, tmp_path / key[1]).outputs
    del tables["output"]  # whatever the disk of this machine holds
    tables["run"].pop("steady", None)  # which may name an output
    assert plan(parse_case(tables, tmp_path / key[1])).runs


@pytest.mark.parametrize("key", SCRIPTS, ids="/".join)
def test_a_script_is_python_and_the_chapter_runs_it(key):
    chapter, name = key
    ast.parse(BLOCKS[key])
    assert f"\npython {name}" in TUTORIALS[chapter]


@pytest.mark.parametrize("chapter", TUTORIALS)
def test_a_tutorial_has_its_parts(chapter):
    text = TUTORIALS[chapter]
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert any(heading.startswith("The case") for heading in headings)
    assert "Expected numbers" in headings
    assert headings[-1] == "What to vary"
    assert "mpilbm check" in text
    assert re.search(r"\d{4}-\d\d-\d\d", text[text.index("## Expected numbers") :])


@pytest.mark.parametrize("path", sorted(MANUAL.glob("*.md")), ids=lambda path: path.stem)
def test_pictures_exist_and_are_small(path):
    for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", path.read_text()):
        assert (MANUAL / name).stat().st_size < BYTES, name

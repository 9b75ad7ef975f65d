"""What the README shows is what the repository holds, and what it names exists."""

import re
import shlex
import tomllib

import pytest
from support import ROOT
from support.findings import warnings_of

from mpilbm.case.case import parse_case
from mpilbm.cli import cli

README = (ROOT / "README.md").read_text()
LINES = 149
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
PROSE = BLOCK.sub("", README)


NEXT = (ROOT / "tools/demo").read_text().partition("<<end\n")[2].partition("\nend")[0]


def code_lines():
    """Lines of the blocks without a language, and inline code, without comments."""
    blocks = [
        line
        for language, text in BLOCK.findall(README)
        if not language
        for line in text.splitlines()
    ]
    inline = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", PROSE)]
    demo = [line.strip() for line in NEXT.replace("$ranks", "2").splitlines()]
    return [re.sub(r"(^|\s)#.*", "", line) for line in blocks + inline + demo]


COMMANDS = [
    line[line.index("mpilbm ") :]
    for line in code_lines()
    if re.match(r"(mpirun -n \w+ )?mpilbm [a-z]", line)
]


def test_environments_are_not_made_over_the_clone():
    """`python3 -m venv DIR` writes bin, lib and .gitignore into DIR, which may be the clone."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("mpilbm/view/manual/*.md")]
    made = [word for path in pages for word in re.findall(r"-m\s+venv (\S+)", path.read_text())]
    assert set(made) <= {".venv", "DIR`", "…`"}


def cells():
    """The cells of all tables."""
    rows = [line for line in PROSE.splitlines() if line.startswith("|")]
    return [cell.strip() for row in rows for cell in row.strip("|").split("|")]


def test_it_is_short():
    assert len(README.splitlines()) <= LINES


def test_the_case_shown_is_a_case():
    (text,) = (text for language, text in BLOCK.findall(README) if language == "toml")
    assert warnings_of(parse_case(tomllib.loads(text), ROOT / "README.md")) == ()


def test_files_named_exist():
    named = re.findall(r"`(?:\./)?((?:tools|jobs|cases|mpilbm)/[\w./-]+)[`\s]", README)
    named += re.findall(r"^\./(tools/\w+)", README, re.M)
    linked = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert named
    assert linked
    for name in named + linked:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command):
    _, verb, *words = shlex.split(command)
    assert verb in cli.commands, verb
    options = {option for each in cli.commands[verb].params for option in each.opts}
    for word in words:
        assert not word.startswith("--") or word.partition("=")[0] in options, word


def test_commands_are_found():
    assert {command.split()[1] for command in COMMANDS} >= {"run", "check", "plot", "bench", "info"}


def test_cells_are_no_sentences():
    assert len(cells()) > 80
    for cell in cells():
        assert not cell.endswith((".", "!", "?")), cell
        assert not re.search(r"[a-z]{2}[.;] [A-Za-z]", re.sub(r"et al\.", "", cell)), cell


def test_tables_are_followed_by_their_source():
    """Machine, date and command stand in the paragraph below each table of figures."""
    lines = PROSE.splitlines()
    ends = [
        i
        for i, line in enumerate(lines)
        if line.startswith("|") and not lines[i + 1].startswith("|")
    ]
    assert len(ends) == 2
    for end in ends:
        below = " ".join(lines[end + 2 : end + 5])
        assert re.search(r"H200|EPYC", below), below
        assert re.search(r"\d{4}-\d\d-\d\d", below), below
        assert "`" in below, below

"""The manual: chapters, links, examples and commands are right, and the command shows them."""

import re
import shlex
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from mpilbm.case.case import parse_case, schema
from mpilbm.case.quantities import Reading
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.typed_keys import converted
from mpilbm.cli import cli
from mpilbm.core.errors import CommandError
from mpilbm.core.printable import inline
from mpilbm.core.quantity import whole_type
from mpilbm.core.registry import KINDS, as_json, find, names
from mpilbm.core.units import Units
from mpilbm.view.manual import LAYERS, pages

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from chapters import anchors, case_file, keys, without_code  # noqa: E402

NAMES = sorted(path.stem for path in pages.FOLDER.glob("*.md"))
REQUIRED = {key for key, field in CaseFile.model_fields.items() if field.is_required()}
FENCES = re.compile(r"^(`{3,}|~{3,})[ \t]*(\S*)([^\n]*)\n(.*?)^\1[ \t]*$", re.M | re.S)
LINKS = re.compile(r"!?\[(?:[^\]\\]|\\.)*\]\(([^)\s]+)[^)]*\)")
COMMANDS = re.compile(r"(?:^|[\s|;&(])mpilbm(?:[ \t]+[^\n`|;&]*)?", re.M)


def blocks(text: str):
    """(language, rest of its line, text) of each code block."""
    return [(match[2], match[3].strip(), match[4]) for match in FENCES.finditer(text)]


def invoke(*arguments: str):
    return CliRunner().invoke(cli, ["manual", *arguments])


# The chapters


def test_the_list_of_chapters_is_that_of_the_files():
    assert sorted(pages.ORDER) == NAMES
    assert len(set(pages.ORDER)) == len(pages.ORDER)


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_begins_with_its_title_and_a_sentence(name):
    chapter = pages.read(name)
    assert re.match(r"# [^\n]+\n\n\S", chapter.text)
    assert 20 <= len(chapter.summary) <= 200
    assert not chapter.summary.startswith(("#", "|", "-", "```"))
    headings = re.findall(r"^# ", without_code(chapter.text), re.M)
    assert len(headings) == 1, "one title, the first line"


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    chapter = pages.read(name)
    code = re.compile(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
    for target in LINKS.findall(code.sub("", without_code(chapter.text))):
        if re.match(r"(https?|mailto):", target):
            continue
        file, _, anchor = target.partition("#")
        assert not file.startswith("/"), target
        assert not file or (pages.FOLDER / file).is_file(), target
        if anchor:
            found = pages.read(file.removesuffix(".md")) if file else chapter
            known = anchors(found.text)
            assert anchor in known, f"{target}; there are {', '.join(known)}"


@pytest.mark.parametrize("name", NAMES)
def test_lists_and_tables_follow_an_empty_line(name):
    """Otherwise the HTML pages show them as part of the paragraph, unlike a terminal."""
    lines = without_code(pages.read(name).text).split("\n")
    item = re.compile(r"([-*+]|\d+\.) ")
    for before, line in pairwise(lines):
        starts = bool(item.match(line)) and before and not before.startswith(" ")
        assert not (starts and not item.match(before)), line
        starts = line.startswith("|") and before
        assert not (starts and not before.startswith("|")), line


@pytest.mark.parametrize("name", NAMES)
def test_cases_in_a_chapter_are_right(name, tmp_path):
    """Each TOML block parses; one that holds all required tables is a case that can run.

    A block with `title="NAME.toml"` must be a complete case.
    """
    np.save(tmp_path / "rock.npy", np.zeros((1, 1, 1)))  # a script of a tutorial makes it
    for language, rest, text in blocks(pages.read(name).text):
        if language != "toml":
            continue
        tables = tomllib.loads(text)
        if re.search(r'title="[^"]+\.toml"', rest):
            assert tables.keys() >= REQUIRED, rest
        if tables.keys() >= REQUIRED:
            parse_case(tables, tmp_path / f"{name}.toml")


def commands(text: str):
    """The words of each `mpilbm VERB …` in code."""
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", without_code(text))
    for part in [block for language, _, block in blocks(text) if language != "text"] + spans:
        joined = re.sub(r"\\\n\s*", " ", re.sub(r"(^|\s)#.*", "", part))
        for match in COMMANDS.finditer(joined):
            try:
                words = shlex.split(match[0].replace("…", ""))
            except ValueError:  # a quote that the pattern has cut
                words = match[0].split()
            yield words[words.index("mpilbm") + 1 :] if "mpilbm" in words else []


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist(name):
    known = {"--help", "-h", "--version", "--plugin", "--debug"}
    for words in commands(pages.read(name).text):
        verbs = [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)]
        if not words or words[0].startswith("-"):
            assert not words or words[0] in known, words
            continue
        assert verbs[:1] == words[:1], words
        assert verbs[0] in cli.commands, f"mpilbm {verbs[0]} does not exist"
        options = {option for each in cli.commands[verbs[0]].params for option in each.opts}
        for word in words[1:]:
            if word.startswith("--") or re.fullmatch(r"-[a-z]", word):
                assert word.partition("=")[0].rstrip(").,]") in options | known, words


def test_commands_are_found():
    text = "`mpilbm rum x`\n\n```sh\nmpirun mpilbm run a.toml \\\n  --set 'a=1'  # mpilbm no\n```\n"
    assert list(commands(text)) == [["run", "a.toml", "--set", "a=1"], ["rum", "x"]]


# The reference of the case file


def test_the_reference_is_what_the_models_give():
    again = "write it again: tools/manual"
    assert case_file.FILE.read_text(encoding="utf-8") == case_file.chapter(), again


def keys_of(part) -> set[str]:
    """All keys of the tables that a JSON schema describes."""
    if isinstance(part, list):
        return set().union(*map(keys_of, part))
    if not isinstance(part, dict):
        return set()
    found = set(part.get("properties", {}))
    values = [value for key, value in part.items() if key not in ("properties", "examples")]
    return found | keys_of(values) | keys_of(list(part.get("properties", {}).values()))


def test_the_reference_has_every_key_of_the_schema():
    text = case_file.FILE.read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    wanted = keys_of(schema()) - {"name"}
    assert len(wanted) > 80
    assert wanted - rows == set()


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_has_every_name_and_its_keys(kind):
    text = case_file.FILE.read_text(encoding="utf-8")
    parts = re.split(r"^(##+ .*)$", text, flags=re.M)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    own = next(s for s in case_file.sections() if s.table == kind)
    common = bodies[f"## {case_file.heading(own)}"]
    for name in names(kind):
        body = bodies[f"### {case_file.KIND_TITLES[kind]} `{name}`"]
        for key in find(kind, name).model_fields.keys() - {"name"}:
            assert f"| `{key}` |" in body + common, f"{name}.{key}"


def models():
    """Every model of a table in a case file."""
    found = [CaseFile]
    for section in case_file.sections():
        found += case_file.models(section.table)
    return found


@pytest.mark.parametrize("cls", models(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_each_key_has_a_meaning_and_an_example_that_is_allowed(cls):
    for key, field in cls.model_fields.items():
        if key == "name":
            continue
        assert field.description, f"{cls.__name__}.{key}: give the field a description"
        example = {key: keys.example(key, field)}
        assert tomllib.loads(inline(example)[1:-1]) == as_plain(example)
        reading = Reading(Units(1, 1, 1), 1 / 3)
        value = converted(example[key], reading.convert, whole_type(field), key)
        assert reading.problems == []
        TypeAdapter(whole_type(field)).validate_json(as_json(value), strict=True)


def as_plain(value):
    """What TOML gives back: lists for tuples."""
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_contributing_shows_the_layers():
    text = pages.read("contributing").text
    shown = re.findall(r"^\| (`.*`) \| (.*) \|$", text.split("## Where")[0], re.M)
    assert shown == [
        (", ".join(f"`{name}`" for name in names.split()), what) for names, what in LAYERS
    ]


def test_docstrings_become_markdown():
    assert case_file.escaped("f*_k = `a_b*` <s|h>") == r"f\*\_k = `a_b*` \<s\|h\>"


# The command


def test_the_list_shows_title_and_first_sentence():
    lines = invoke().output.splitlines()
    for name in NAMES:
        chapter = pages.read(name)
        line = next(line for line in lines if line.split()[:1] == [name])
        assert chapter.title in line
        assert chapter.summary in line


def test_a_chapter_is_shown_as_text_without_escapes():
    done = invoke("case-file")
    assert done.exit_code == 0
    assert "Case file" in done.output
    assert "rho_jump" in done.output
    assert "\x1b" not in done.output
    assert "(#" not in done.output


def test_a_terminal_gets_colours_and_lines_that_fit():
    text = pages.rendered("# Title\n\nSome `code` in " + 60 * "words ", colours=True)
    assert "\x1b[" in text
    assert re.sub("\x1b\\[[0-9;]*m", "", text) != text


def test_links_to_chapters_become_names_of_chapters():
    text = "See [Units](units.md#si), [`[x]`](#x).\n\n```\n[a](units.md)\n```\n"
    found = pages.for_terminal(text)
    assert found == "See Units (chapter `units`), `[x]`.\n\n```\n[a](units.md)\n```\n"


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [
        ("case-fil", "did you mean 'case-file'?"),
        ("cavity", "'tutorial-cavity'"),
        ("q_criterion", "the word occurs in"),
        ("xyzzyx", "allowed: index, installation"),
    ],
)
def test_an_unknown_topic_names_near_ones(topic, wanted):
    done = invoke(topic)
    assert done.exit_code == 2
    assert f"'{topic}' is not a chapter" in done.stderr
    assert wanted in done.stderr


def test_chapters_are_found_in_any_case_and_with_their_suffix():
    assert pages.find("Case-File.md").name == "case-file"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("# T\n\nOne `a.b` [link](x.md).\nTwo.", "One a.b link."),
        ("# T\n\nUp to\n3.5 GB. More.", "Up to 3.5 GB."),
    ],
)
def test_the_summary_is_the_first_sentence(text, summary):
    assert pages.Chapter("t", text).summary == summary


def test_anchors_are_those_of_python_markdown():
    text = "# Näme `a_b`: x\n\n## One\n\n```\n## no\n```\n\n## One\n\n## `[run.steady]`\n"
    assert anchors(text) == ["name-a_b-x", "one", "one_1", "runsteady"]


# The pages in HTML


def test_the_menu_has_every_chapter_once():
    def files(entries):
        for entry in entries:
            (value,) = entry.values()
            yield from files(value) if isinstance(value, list) else [value.removesuffix(".md")]

    assert list(files(pages.navigation())) == list(pages.ORDER)


def test_a_folder_with_files_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CommandError, match="holds files; name a new or empty folder"):
        pages.build(tmp_path)
    with pytest.raises(CommandError, match="is a file"):
        pages.build(tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_topic_with_html_is_refused(tmp_path):
    with pytest.raises(CommandError, match="writes all chapters; remove 'units'"):
        pages.build(tmp_path / "html", "units")


def test_without_mkdocs_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "material", None)
    done = invoke("--html", str(tmp_path / "html"))
    assert done.exit_code == 2
    assert "requires mkdocs-material" in done.stderr
    assert "pip install 'mpilbm[docs]'" in done.stderr


def test_the_chapters_are_package_data():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = settings["tool"]["setuptools"]["package-data"]["mpilbm"]
    found = {path for pattern in data for path in (ROOT / "mpilbm").glob(pattern)}
    kept = {path for path in pages.FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    kept -= set(pages.FOLDER.glob("templates/*"))  # read in a checkout, to write chapters again
    assert {path for path in kept if path.suffix != ".py"} <= found
    assert ROOT / "mpilbm/py.typed" in found

"""The word list: the repository holds none of its words, and tools/words finds them."""

import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load():
    loader = SourceFileLoader("words", str(ROOT / "tools" / "words"))
    module = module_from_spec(spec_from_loader("words", loader))
    loader.exec_module(module)
    return module


words = load()
AGAIN, LEFT = "a" + "new", ("what", "left")  # two of the words, not written here


def found(text: str, allowed=()) -> list[str]:
    return [hit.word for hit in words.hits(text, allowed)]


def test_the_repository_holds_none_of_the_words():
    lines = words.report(words.repository())
    assert lines == [], f"{len(lines)} to replace, see tools/words"


@pytest.mark.parametrize("text", ["# {} {}\n", "x = '{}\t{}'", "# {}\n    # {} it", "a_{}_{}_b"])
def test_a_phrase_is_found_across_lines_and_in_names(text):
    assert len(found(text.format(*LEFT))) == 1


def test_words_are_whole_words_in_any_case():
    assert found(AGAIN) == [AGAIN]
    assert found(AGAIN.upper()) == [AGAIN.upper()]
    assert found(f"{AGAIN}er x{AGAIN}") == []


@pytest.mark.parametrize(
    "text",
    ["the state before the step", "rho stands for density", "a recommended fix", "the last step",
     "what is left", "somewhat left of it", "the leftmost", "it was toldest", "stands for\nit"],
)  # fmt: skip
def test_usual_english_is_no_hit(text):
    assert found(text) == []


def test_a_closed_pipe_ends_it_without_a_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, ROOT / "tools" / "words", "--list"],
                          stdout=writer, stderr=subprocess.PIPE, check=False)  # fmt: skip
    os.close(writer)
    assert done.stderr == b""


def test_every_word_has_a_suggestion():
    assert all(words.WORDS.values())


def test_an_exception_covers_its_phrase_alone():
    text = f"begin {AGAIN}, and {AGAIN}"
    assert found(text, [f"begin {AGAIN}"]) == [AGAIN]


def test_exceptions_are_those_of_the_glossary_and_in_use():
    files = {str(path.relative_to(ROOT)): path for path in words.repository() if path.is_file()}
    for phrase, patterns in words.exceptions():
        for pattern in patterns:
            texts = [path.read_text(encoding="utf-8") for name, path in files.items()
                     if words.fnmatch(name, pattern)]  # fmt: skip
            held = any(words.pattern(phrase).search(text) for text in texts)
            assert held, f"remove the exception '{phrase}' in {pattern}"


def test_exceptions_are_read_from_a_table(tmp_path, monkeypatch):
    page = tmp_path / "glossary.md"
    rows = f"| phrase | files | reason |\n|---|---|---|\n| `begin {AGAIN}` | `a/*`, `b.py` | x |\n"
    page.write_text(
        f"# G\n\n| x |\n|---|\n\n{words.SECTION}\n\nText.\n\n{rows}\n## More\n\n| y |\n"
    )
    monkeypatch.setattr(words, "GLOSSARY", page)
    assert words.exceptions() == [(f"begin {AGAIN}", ["a/*", "b.py"])]


def test_the_command_prints_file_line_word_and_suggestion(tmp_path):
    file = tmp_path / "a.md"
    file.write_text(f"# One\n\nBegin {AGAIN}.\n")
    (tmp_path / "b.bin").write_text(AGAIN)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "words", file, tmp_path / "b.bin"],
        capture_output=True, text=True, timeout=200, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == f"{file}:3: {AGAIN} -> again\n"
    file.write_text("# One\n")
    done = subprocess.run([sys.executable, ROOT / "tools" / "words", file], timeout=200)
    assert done.returncode == 0


def test_the_glossary_is_sorted():
    body = words.GLOSSARY.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^- \*\*(.+?)\*\*: ", body, re.M)
    assert len(rows) > 40
    assert rows == sorted(rows, key=str.lower)

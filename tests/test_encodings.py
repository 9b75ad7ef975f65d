"""Text of files and of other programs is read and written in UTF-8, whatever the locale.

ruff's rule PLW1514 covers `open` and paths of a known type; here are the other calls.
"""

import ast
from pathlib import Path

import pytest
from support import ROOT

TEXT = {"text", "universal_newlines"}  # which make subprocess use the encoding of the locale


def lacks_encoding(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    words = {word.arg for word in call.keywords}
    if "encoding" in words:
        return False
    needed = {"read_text": 1, "write_text": 2}.get(name, 0)
    return len(call.args) < needed or bool(words & TEXT)


def found_in(text: str) -> list[int]:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if lacks_encoding(call)]


def is_python(path: Path) -> bool:
    if path.suffix:
        return path.suffix == ".py"
    return path.is_file() and b"python" in path.read_bytes()[:30]


@pytest.mark.parametrize("folder", ["mpilbm", "tools"])
def test_every_encoding_is_given(folder):
    files = filter(is_python, sorted((ROOT / folder).rglob("*")))
    found = [f"{path}:{line}" for path in files for line in found_in(path.read_text("utf-8"))]
    assert not found, "give encoding='utf-8', for output of programs also errors='replace'"


@pytest.mark.parametrize(
    "text", ["p.read_text()", "p.write_text(t)", "run(c, text=True)", "p.q().read_text()"]
)
def test_a_missing_encoding_is_found(text):
    assert found_in(text) == [1]

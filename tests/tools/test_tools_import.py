"""The tools import names that the package has; most tools run too long for a test."""

import ast
import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def is_python(path: Path) -> bool:
    """Whether a file is a Python module or a script that Python runs."""
    if path.suffix == ".py":
        return True
    return path.is_file() and not path.suffix and b"python" in path.read_bytes().split(b"\n")[0]


def imported(path: Path) -> list[tuple[str, str]]:
    """(module, name) of all imports from the package."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return [
        (node.module, alias.name)
        for node in found
        if node.module and node.module.partition(".")[0] == "mpilbm"
        for alias in node.names
    ]


@pytest.mark.parametrize("path", sorted(filter(is_python, TOOLS.iterdir())), ids=lambda p: p.name)
def test_a_tool_imports_names_that_exist(path):
    for module, name in imported(path):
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")

"""The tools name what the package has; most tools run too long for a test."""

import ast
import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def is_python(path: Path) -> bool:
    """Whether a file is a Python module or a script that Python runs."""
    if path.suffix == ".py":
        return True
    return path.is_file() and not path.suffix and b"python" in path.read_bytes().split(b"\n")[0]


def imported(tree: ast.Module) -> dict[str, object]:
    """What a tool imports from the package, by the names in the tool; ImportError."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mpilbm":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = getattr(module, alias.name)
    return found


def missing(tree: ast.Module) -> list[str]:
    """Names `module.name` in a tool that an imported module of the package does not have."""
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and is_set(node)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    things = {name: thing for name, thing in imported(tree).items() if name not in own}
    named = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return [
        f"{name}.{part}"
        for name, part in sorted(named)
        if isinstance(things.get(name), ModuleType) and not hasattr(things[name], part)
    ]


def refused(tree: ast.Module) -> list[str]:
    """Calls in a tool that an imported function of the package would refuse, with the reason."""
    things, found = imported(tree), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(e, ast.Starred) for e in node.args):
            continue
        name, _, part = ast.unparse(node.func).partition(".")
        thing = getattr(things.get(name), part, None) if part else things.get(name)
        named = {each.arg: None for each in node.keywords}
        if inspect.isfunction(thing) and None not in named:
            try:
                inspect.signature(thing).bind(*node.args, **named)
            except TypeError as error:
                found.append(f"{name}: {error}")
    return found


def is_set(node: ast.Name) -> bool:
    """Whether a name gets a value here."""
    return isinstance(node.ctx, ast.Store)


@pytest.mark.parametrize("path", sorted(filter(is_python, TOOLS.iterdir())), ids=lambda p: p.name)
def test_a_tool_names_what_the_package_has(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert missing(tree) == []
    assert refused(tree) == []


def test_missing_names_are_found():
    text = "from mpilbm.core import units\nunits.mach(1, 1); units.speed\ndef f(units): units.x"
    assert missing(ast.parse(text.partition("\ndef")[0])) == ["units.speed"]
    assert missing(ast.parse(text)) == []
    with pytest.raises(ImportError):
        missing(ast.parse("from mpilbm.core import processes"))


def test_calls_that_are_refused_are_found():
    text = "from mpilbm.core import units\nfrom mpilbm.core.units import counted\n"
    assert refused(ast.parse(text + "counted(1, noun='rank'); units.counted(*two)")) == []
    found = refused(ast.parse(text + "counted(1); units.counted(1, 'rank', 2)"))
    assert found == ["counted: missing a required argument: 'noun'",
                     "units: too many positional arguments"]  # fmt: skip

"""The calls of the scripts in tools/ fit the functions of the package; mypy does not see them."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"


def scripts() -> Iterator[Path]:
    """Yield the Python scripts and modules of tools/."""
    for path in sorted(TOOLS.rglob("*")):
        if path.suffix == ".py" or (
            path.is_file() and not path.suffix and b"python" in path.read_bytes()[:40]
        ):
            yield path


def imported(tree: ast.Module) -> dict[str, object]:
    """Names of the script that are objects or modules of the package."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mpilbm":
            module = import_module(node.module or "")
            for each in node.names:
                path = f"{node.module}.{each.name}"
                value = getattr(module, each.name, None)
                found[each.asname or each.name] = import_module(path) if value is None else value
    return found


def unfit(path: Path) -> Iterator[str]:
    """Yield the calls with arguments that the function does not take, or without those it needs."""
    tree = ast.parse(path.read_text("utf-8"))
    names = imported(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function, starred = call.func, any(isinstance(a, ast.Starred) for a in call.args)
        if starred or any(word.arg is None for word in call.keywords):
            continue
        if isinstance(function, ast.Name):
            called = names.get(function.id)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            owner = names.get(function.value.id)
            called = getattr(owner, function.attr, None) if inspect.ismodule(owner) else None
        else:
            called = None
        if called is None or not (inspect.isfunction(called) or inspect.isclass(called)):
            continue
        words = {word.arg: None for word in call.keywords if word.arg}
        try:
            inspect.signature(called).bind(*call.args, **words)
        except TypeError as error:
            yield f"{path.name}, line {call.lineno}: {ast.unparse(function)}: {error}"


def test_calls_of_the_package_have_the_arguments_it_takes():
    """Of functions and classes that the scripts import by name or use as module.name."""
    found = list(scripts())
    assert len(found) > 30
    assert not [line for path in found for line in unfit(path)]


def test_a_call_without_an_argument_is_found(tmp_path):
    """build_solver needs a case, a communicator and where its lines go."""
    path = tmp_path / "tool"
    path.write_text("from mpilbm.run.setup import build_solver\nbuild_solver(1, 2)\n", "utf-8")
    (line,) = unfit(path)
    assert "line 2: build_solver: missing a required argument: 'say'" in line

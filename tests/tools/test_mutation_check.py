"""tools/mutation_check: its faults, the tests that it chooses, and a small package."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support import ROOT

SOURCE = '''\
"""A module: 1 - 2."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    LIMIT = 1 - 2
Axis = Literal["x", "y", "z"]
WIDTH = 80


def f(a, x: "1 - 2", y=None) -> "1 - 2":
    """x - y."""
    if x < 0:
        raise ValueError("x - y" + str(x - 1))
    print(x - 1, "é" * 3)
    label = f"{x - 1} cells"
    return a.sum(axis=0) + (
        "é", a[1] * x  # a comment * with a sign
        - y
    )[1], range(x), x / (y + 2.5), not (x and y), u_x(label)


def u_x(text):
    return text.ljust(3) is not None or u_y(text, fontsize=3)


def u_y(text, **_):
    return text == "x"
'''
KINDS = {
    "sign",
    "constant",
    "bound",
    "axis",
    "dropped term",
    "dropped condition",
    "swapped operands",
    "negated condition",
}
TINY = "def total(a, b):\n    return a + b\n\n\ndef shown(a, b):\n    return a * b\n"
TESTS = """\
from tiny.sums import shown, total


def test_total():
    assert total(3, 5) == 8


def test_shown():
    assert shown(1, 1) == 1


def test_that_fails():
    assert shown(1, 1) == 2
"""


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from mutations import candidates, choice, faults

    return candidates, choice, faults


@pytest.fixture
def tree(tmp_path):
    """A repository with a package `tiny`, and a test that fails with and without faults."""
    for name, text in {"tiny/sums.py": TINY, "tests/test_tiny.py": TESTS}.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
    return tmp_path


def test_a_fault_changes_one_line_and_compiles(parts):
    candidates, _, faults = parts
    changes = [c for c in candidates.changes(SOURCE) if faults._is_effective(SOURCE, c)]
    assert {change.kind for change in changes} == KINDS
    before = SOURCE.splitlines()
    for change in changes:
        after = faults.applied(SOURCE, change).splitlines()
        assert len(after) == len(before)
        lines = [k for k, pair in enumerate(zip(before, after, strict=True), 1) if len({*pair}) > 1]
        assert lines == [change.line]
    changed = {before[change.line - 1].strip() for change in changes}
    assert changed == {
        "if x < 0:",
        "return a.sum(axis=0) + (",
        '"é", a[1] * x  # a comment * with a sign',
        "- y",
        ")[1], range(x), x / (y + 2.5), not (x and y), u_x(label)",
        'return text == "x"',
        "return text.ljust(3) is not None or u_y(text, fontsize=3)",
    }  # no docstring, message, annotation, width or size of a font


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("p = a - b", ["p = a + b", "p = a", "p = - b", "p = b - a"]),
        ("p = a / (b + c)", ["p = (b + c) / a", "p = a / (b - c)", "p = a / (b)", "p = a / (c)"]),
        ("p = a[i, 1:n]", ["p = a[i, 2:n]", "p = a[i, 0:n]", "p = a[i, 1:n + 1]"]),
        ("p = n.sum(axis=2)", ["p = n.sum(axis=0)", "p = n.sum(axis=1)"]),
        ("p = x + u_y + y + u_z", ["p = y + u_y + y + u_z", "p = x + u_z + y + u_z"]),
        ("p = [i for i in range(n) if i != k]", ["p = [i for i in range(n - 1) if i != k]",
                                                 "p = [i for i in range(n) if i == k]"]),
        ("p += a > b and c", ["p -= a > b and c", "p += a >= b and c", "p += a > b"]),
        ("p = a and b and c", ["p = a and b", "p = a and c", "p = b and c"]),
        ("p = not a", ["p = a"]),
        ("p = 1000 if q else 2", ["p = 2000 if q else 2", "p = 1000 if not (q) else 2"]),
    ],
)  # fmt: skip
def test_the_changes_of_a_line(parts, line, wanted):
    candidates, _, faults = parts
    found = {faults.applied(line, change).rstrip() for change in candidates.changes(line)}
    assert found.issuperset(wanted), found


def test_faults_follow_the_seed_and_the_lines(parts, tree):
    _, _, faults = parts
    (tree / "tiny/long").mkdir()
    (tree / "tiny/long/sums.py").write_text(TINY * 3)
    found = faults.faults(tree, "tiny", 4, seed=1)
    assert [fault.folder for fault in found] == [*3 * ["tiny/long"], "tiny"]
    assert len({fault.place for fault in found}) == 4
    assert found == faults.faults(tree, "tiny", 4, seed=1)
    assert any(found != faults.faults(tree, "tiny", 4, seed) for seed in (2, 3, 4))
    assert faults.shares({"a": 5, "b": 3, "c": 2}, 5) == {"a": 3, "b": 1, "c": 1}


def test_the_lines_of_a_statement(parts):
    _, choice, _ = parts
    text = "if (a\n    and b):\n    c = [\n        1,\n    ]\n    d = 1\n"
    found = {line: choice.statement(text, line) for line in range(1, 7)}
    assert found == {1: {1, 2}, 2: {1, 2}, 3: {3, 4, 5}, 4: {3, 4, 5}, 5: {3, 4, 5}, 6: {6}}


def test_tests_are_those_that_run_the_line(parts, tree):
    _, choice, faults = parts
    coverage = pytest.importorskip("coverage")
    data = coverage.CoverageData(basename=str(tree / "data"))
    cases = "tests/a/test_b.py::test_c[1.5]", "tests/a/test_b.py::test_d", "tests/test_e.py::test_f"
    lines = {"": [1, 5]} | {f"{case}|run": [2] for case in cases}
    for context, numbers in lines.items():
        data.set_context(context)
        data.add_lines({"/elsewhere/tiny/sums.py": numbers})
    data.write()
    report = tree / "report.xml"
    report.write_text(
        '<t><testcase classname="tests.a.test_b" name="test_c[1.5]" time="0.5"/>'
        '<testcase classname="tests.a.test_b" name="test_d" time="0.2"/>'
        '<testcase classname="tests.test_e" name="test_f" time="0.3"/></t>'
    )
    known = choice.durations(report)
    chooser = choice.Choice(tree, 9, 4.0, choice.Coverage([tree / "data"], "tiny"), known)

    def tests(line):
        change = faults.Change(line, 0, 0, b"", "sign")
        return chooser.of(faults.Fault("tiny/sums.py", change, "", ""))

    run = ["tests/a/test_b.py::test_d", "tests/test_e.py::test_f", "tests/a/test_b.py::test_c[1.5]"]
    assert tests(2) == (run, "tests that run the line")
    assert tests(5) == ([*run, "tests/test_tiny.py"], "tests that run the module")
    assert tests(6) is None
    chooser.seconds = 1.9  # without test_c
    assert tests(2).tests == run[:2]


def test_a_found_fault_and_a_survivor_are_reported(tree):
    """The tests of `shown` accept a quotient; the test that always fails finds nothing."""
    (tree / "tiny/sums.py").write_text(TINY.replace("a * b", "a - b + b"))
    done = call("--json", "found.json", cwd=tree)
    assert done.returncode == 1, done.stdout + done.stderr
    results = json.loads((tree / "found.json").read_text())
    found = {result["place"]: (result["status"], result["by"]) for result in results}
    by = "tests/test_tiny.py::test_total"
    assert found == {"tiny/sums.py:2": ("found", by), "tiny/sums.py:6": ("survived", "")}
    assert TINY.count("a + b") == (tree / "tiny/sums.py").read_text().count("a + b")


def test_a_plan_sorts_the_tests(parts, tmp_path):
    from mutations.order import Plan

    names = "a.py::f[1]", "a.py::f[2]", "a.py::g[1]", "b.py::h[1]", "b.py::h[2]", "b.py::k"
    items = [SimpleNamespace(nodeid=name) for name in names]
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    plan = Plan(["b.py::k", "b.py::h[9]", "a.py"], ["b.py::h[2]"], 1.0, str(tmp_path / "log"))
    plan.pytest_collection_modifyitems(SimpleNamespace(hook=hook), items)
    found = [item.nodeid for item in items]
    assert found == ["b.py::k", "b.py::h[1]", "a.py::f[1]", "a.py::g[1]", "a.py::f[2]"]


def test_no_test_begins_after_half_of_the_time(parts, tree, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    from mutations.runs import Bench

    bench = Bench(tree, tmp_path_factory.mktemp("bench"), 1e-9)
    run = bench._pytest(bench.clean, ["tests/test_tiny.py"], None, bench.cache)
    assert run.complete, run.output
    assert run.begun == ["tests/test_tiny.py::test_total"]


def call(*arguments, cwd):
    tool = [sys.executable, str(ROOT / "tools/mutation_check"), "--root", ".", "--package", "tiny"]
    command = [*tool, "--faults", "2", "--seed", "1", *arguments]
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # pytest starts faster
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=200)

"""Which tests may find a fault: those that run its line, or those of the mirrored folder."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple
from xml.etree import ElementTree

from mutations.faults import Fault


class Chosen(NamedTuple):
    """Node ids or files of tests, in order; `how` they were chosen."""

    tests: list[str]
    how: str


class Coverage:
    """The tests that run each line, from data files of coverage.py with contexts of tests.

    The data may be of another copy of the tree: only paths from the package on are compared.
    """

    def __init__(self, files: Iterable[Path], package: str):
        from coverage import CoverageData  # not a requirement of the tests

        self.sources: dict[str, list[tuple[CoverageData, str]]] = {}
        for file in files:
            data = CoverageData(basename=str(file))
            data.read()
            for name in data.measured_files():
                _, found, path = name.rpartition(f"/{package}/")
                if found:
                    self.sources.setdefault(f"{package}/{path}", []).append((data, name))

    def lines(self, path: str) -> dict[int, set[str]]:
        """{line that was run: node ids}; the set is empty if only imports or commands ran it."""
        found: dict[int, set[str]] = {}
        for data, name in self.sources.get(path, []):
            for line, contexts in data.contexts_by_lineno(name).items():
                tests = {context.rpartition("|")[0] or context for context in contexts if context}
                found.setdefault(line, set()).update(tests)
        return found


def durations(report: Path) -> dict[str, float]:
    """{(module and name): seconds} of a JUnit report of pytest, see `_key`."""
    found: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        key = f"{case.get('classname')}.{case.get('name')}"
        found[key] = found.get(key, 0.0) + float(case.get("time", 0))
    return found


def _key(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    head, bracket, case = name.partition("[")
    function = f"{file.removesuffix('.py')}/{head}".replace("::", ".").replace("/", ".")
    return function + bracket + case


class Choice:
    """Chooses the tests of a fault.

    most     number of tests
    seconds  their total time, and four times the longest, where durations are known
    """

    def __init__(
        self,
        root: Path,
        most: int,
        seconds: float,
        coverage: Coverage | None = None,
        known: dict[str, float] | None = None,
    ):
        self.root, self.most, self.seconds = root, most, seconds
        self.coverage, self.known = coverage, known or {}
        self.usual = median(self.known.values()) if self.known else 0.0

    def of(self, fault: Fault) -> Chosen | None:
        """The tests of a fault; None if no test runs its line."""
        if self.coverage is None:
            return Chosen(self._mirrored(fault.path), "tests of the folder")
        lines = self.coverage.lines(fault.path)
        text = (self.root / fault.path).read_text("utf-8")
        place = {fault.change.line} & lines.keys()
        place = place or statement(text, fault.change.line) & lines.keys()
        if not place:
            return None
        if tests := set().union(*(lines[line] for line in place)):
            return Chosen(self._fastest(tests), "tests that run the line")
        others = self._fastest(set().union(*lines.values()))
        return Chosen(others + self._mirrored(fault.path), "tests that run the module")

    def _fastest(self, tests: set[str]) -> list[str]:
        """The fastest of each file, then the second of each file, and so on."""
        times = {test: self.known.get(_key(test), self.usual) for test in tests}
        times = {test: time for test, time in times.items() if 4 * time <= self.seconds}
        rounds: dict[str, int] = {}
        order = []
        for test in sorted(times, key=lambda test: (times[test], test)):
            file = test.partition("::")[0]
            rounds[file] = rounds.get(file, 0) + 1
            order.append((rounds[file], times[test], test))
        total, found = 0.0, []
        for _, time, test in sorted(order)[: self.most]:
            total += time
            if total > self.seconds:
                break
            found.append(test)
        return found

    def _mirrored(self, path: str) -> list[str]:
        """The files of tests/FOLDER that name the module, the nearest folder first; tests/laws."""
        inside, module = Path(path).parts[1:], Path(path).stem
        module = Path(path).parts[-2] if module == "__init__" else module
        names = re.compile(rf"\b{re.escape(module)}\b")
        tests = self.root / "tests"
        near = [tests.joinpath(*inside[:depth]) for depth in range(len(inside) - 1, 0, -1)]
        tried = [file for folder in near or [tests] for file in sorted(folder.rglob("test_*.py"))]
        files = [file for file in tried if names.search(file.read_text("utf-8"))]
        files += sorted((tests / "laws").glob("test_*.py"))
        return list(dict.fromkeys(file.relative_to(self.root).as_posix() for file in files))


def statement(text: str, line: int) -> set[int]:
    """The lines of the innermost statement at a line; of a compound one its head alone."""
    found, smallest = {line}, len(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            if node.lineno <= line <= last and last - node.lineno < smallest:
                found, smallest = set(range(node.lineno, last + 1)), last - node.lineno
    return found

"""Runs of tests with and without a fault, in copies of the tree."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mutations.choice import Chosen
from mutations.faults import Fault, applied

LEFT_OUT = ".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", "*.out"
TOOLS = Path(__file__).parents[1]
MISSED = "not covered"
ATTEMPTS = 8  # runs of a fault; each leaves out a test that fails or is slow without the fault


class Outcome(NamedTuple):
    """What the tests make of a fault.

    status  found, time-out, survived or not covered
    by      the test that finds it, or how
    """

    status: str
    by: str = ""
    tests: int = 0
    seconds: float = 0.0
    how: str = ""

    @property
    def good(self) -> bool:
        """Whether the fault is found."""
        return self.status in {"found", "time-out"}


class _Run(NamedTuple):
    """A run of pytest: exit code (None after a time-out), tests begun, the one that failed.

    complete  whether all tests passed, or those of the time that the plan allows
    """

    code: int | None
    begun: list[str]
    failed: str | None
    complete: bool
    output: str


class Bench:
    """A copy of the tree that gets the faults, one without, and a cache of kernels for both.

    seconds  limit of a run; no test begins after half of it
    ranks    processes of mpirun that run the tests; 0: one process without MPI
    """

    def __init__(self, root: Path, folder: Path, seconds: float, ranks: int = 0):
        self.seconds, self.folder = seconds, folder
        self.launcher = f"mpirun -n {ranks}".split() if ranks else []
        self.options = ["--with-mpi"] if ranks else []
        self.faulty, self.clean, self.cache = (folder / n for n in ("faulty", "clean", "cache"))
        for copy in (self.faulty, self.clean):
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        self._unusable: set[str] = set()
        self._usable: set[str] = set()

    def outcome(self, fault: Fault, chosen: Chosen | None) -> Outcome:
        """Apply a fault, run its tests until one fails, remove the fault."""
        if not chosen or not chosen.tests:
            return Outcome(MISSED)
        path = self.faulty / fault.path
        source = path.read_text("utf-8")
        begin = time.monotonic()
        try:
            _write(path, applied(source, fault.change))
            status, by, tests = self._judged(chosen.tests)
        finally:
            _write(path, source)
        return Outcome(status, by, tests, round(time.monotonic() - begin, 1), chosen.how)

    def _judged(self, tests: list[str]) -> tuple[str, str, int]:
        """(status, test that finds it, tests begun); a test counts if it passes without fault."""
        begun: set[str] = set()
        for _ in range(ATTEMPTS):
            run = self._pytest(self.faulty, tests, self.seconds, self.cache)
            begun.update(run.begun)
            if run.complete:
                break
            late = run.code is None
            suspect = run.failed or (run.begun[-1] if run.begun and (late or run.code < 0) else "")
            if not suspect:  # before the first test
                if self._begins(tests):
                    return ("time-out" if late else "found"), "import or collection", len(begun)
                raise RuntimeError(f"pytest fails without a fault:\n{run.output}")
            if self._passes(suspect, late):
                return ("time-out" if late else "found"), suspect, len(begun)
        begun -= self._unusable
        return "survived" if begun else MISSED, "", len(begun)

    def _passes(self, test: str, late: bool) -> bool:
        """Whether a test passes without the fault, in a quarter of the limit if it was late."""
        if late or test not in self._usable | self._unusable:
            with tempfile.TemporaryDirectory(dir=self.folder) as empty:
                seconds, cache = (self.seconds / 4, Path(empty)) if late else (None, self.cache)
                run = self._pytest(self.clean, [test], seconds, cache)
            (self._usable if run.complete else self._unusable).add(test)
        return test not in self._unusable

    def _begins(self, tests: list[str]) -> bool:
        """Whether pytest collects the tests without the fault."""
        run = self._pytest(self.clean, tests, self.seconds, self.cache, "--collect-only")
        return run.complete

    def _pytest(
        self, tree: Path, tests: list[str], seconds: float | None, cache: Path, *more: str
    ) -> _Run:
        temporary = tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)
        with temporary as place:
            log, plan = Path(place, "log"), Path(place, "plan.json")
            half = (seconds or self.seconds) / 2
            wanted = {"tests": tests, "without": sorted(self._unusable), "seconds": half}
            plan.write_text(json.dumps(wanted | {"log": str(log)}), "utf-8")
            log.touch()
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            present = [file for file in files if (tree / file).exists()]
            options = f"-x -q -p mutations.order -p no:cacheprovider --plan={plan}"
            options = [*options.split(), *self.options, *more]
            command = [*self.launcher, sys.executable, "-m", "pytest", *options, *present]
            paths = os.pathsep.join((str(tree), str(TOOLS)))
            env = os.environ | {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(cache), "TMPDIR": place}
            env.pop("MPILBM_CACHE_DIR", None)
            cache.mkdir(exist_ok=True)
            code, output = _called(command, tree, env, seconds)
            events = [line.partition(" ") for line in log.read_text("utf-8").splitlines()]
        found: dict[str, list[str]] = {"start": [], "failed": [], "end": []}
        for event, _, test in events:
            found[event].append(test)
        failed = next(iter(found["failed"]), None)
        complete = code in {0, 5} or (failed is None and bool(found["end"]))
        return _Run(code, found["start"], failed, complete, output)


def _called(
    command: list[str], tree: Path, env: dict[str, str], seconds: float | None
) -> tuple[int | None, str]:
    """(exit code, end of the output) of a command; None if it ran into its time limit."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=tree, env=env, stdout=output, stderr=output, start_new_session=True
        )
        code: int | None = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:  # and the processes that its tests have started
            _kill(process)
        output.seek(0)
        return code, output.read()[-4000:]


def _kill(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write(path: Path, text: str) -> None:
    """Write a module and remove its byte code, which is not renewed within the same second."""
    path.write_text(text, "utf-8")
    for code in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        code.unlink()

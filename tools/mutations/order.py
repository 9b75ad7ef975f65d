"""Pytest plugin: runs chosen tests in a given order, and records each start and failure.

--plan=FILE names a JSON file:

    tests    node ids of tests, or paths of test files, in order; where a test does not exist, all
             cases of its function take its place. Of a file, the first cases of all functions run
             first, then the second ones, and so on
    without  node ids that are left out
    seconds  no test begins later than this
    log      the file to write: `start NODEID`, `failed NODEID`, and `end NODEID` after
             the last test if the time is over, a line each
"""

import json
import time
from collections import Counter
from pathlib import Path

import pytest


def pytest_addoption(parser):
    """Add --plan."""
    parser.addoption("--plan", help="tests to run, see tools/mutations/order.py")


def pytest_configure(config):
    """Read the plan."""
    if path := config.getoption("plan"):
        config.pluginmanager.register(Plan(**json.loads(Path(path).read_text("utf-8"))))


class Plan:
    """The tests to run, their order and their log."""

    def __init__(self, tests: list[str], without: list[str], seconds: float, log: str):
        self.tests, self.without = tests, set(without)
        self.seconds, self.log, self.begin = seconds, Path(log), time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        """Choose and sort the tests."""
        present = {item.nodeid for item in items}
        ranks: dict[str, int] = {}
        for rank, entry in enumerate(self.tests):
            known = entry in present or "::" not in entry
            ranks.setdefault(entry if known else _function(entry), rank)
        chosen, cases = {}, Counter()
        for item in items:
            file = item.nodeid.partition("::")[0]
            names = {item.nodeid, _function(item.nodeid), file} & ranks.keys()
            if names and item.nodeid not in self.without:
                case = 0 if item.nodeid in names else cases[_function(item.nodeid)]
                chosen[item.nodeid] = min(ranks[name] for name in names), case
                cases[_function(item.nodeid)] += 1
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in chosen])
        kept = [item for item in items if item.nodeid in chosen]
        items[:] = sorted(kept, key=lambda item: chosen[item.nodeid])

    def pytest_runtest_logstart(self, nodeid):
        """Record the start of a test."""
        self._write("start", nodeid)

    def pytest_runtest_logreport(self, report):
        """Record a failure."""
        if report.failed:
            self._write("failed", report.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """End the session after a test if the time is over."""
        yield
        if time.monotonic() - self.begin > self.seconds:
            self._write("end", item.nodeid)
            item.session.shouldstop = "the time of the plan is over"  # exit code 2

    def _write(self, event: str, nodeid: str):
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{event} {nodeid}\n")


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]

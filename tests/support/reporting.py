"""Pytest plugin: the report of each rank, and of tests that hang.

--deadline=SECONDS interrupts the run and prints the failures and skips so far. Ctrl-C alone may
not: a thread that waits in a library, such as MPI, does not receive it.
Under mpirun, rank 0 prints progress and results, the other ranks print their failures.
"""

import faulthandler
import os
import signal
import sys
import threading
import time

import pytest
from _pytest.terminal import TerminalReporter

PATIENCE = 5  # s for the main thread to notice the interrupt
TOO_LATE = 124  # exit code, as that of `timeout`
GRACE = 60  # s for the main thread to stop xdist's workers and print


def pytest_addoption(parser):
    parser.addoption("--deadline", type=float, help="seconds until the run is interrupted")


@pytest.hookimpl(trylast=True)  # after pytest's own reporter is registered
def pytest_configure(config):
    # Tests started with & in a script, and their child processes, would ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):  # of xdist, which reports for its workers
        return
    rank = 0
    if config.getoption("--with-mpi", default=False):
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
    config.pluginmanager.register(Reports(config, rank))


class Reports:
    """The reports of a process that runs tests or collects the results of xdist's workers."""

    def __init__(self, config, rank: int):
        self.config, self.rank = config, rank
        self.writer = config.get_terminal_writer()
        self.late, self.interrupted = False, threading.Event()
        if rank:
            plugins = config.pluginmanager
            plugins.unregister(name="terminalreporter")
            silent = open(os.devnull, "w")  # noqa: SIM115, open until the process ends
            plugins.register(TerminalReporter(config, silent), "terminalreporter")
        if seconds := config.getoption("deadline"):
            self._timer(seconds, self._deadline, seconds)

    def _timer(self, seconds, function, *arguments) -> threading.Timer:
        timer = threading.Timer(seconds, function, arguments)
        timer.daemon = True
        timer.start()
        return timer

    # ------------------------------------------------------------------ failures of other ranks

    def pytest_runtest_logreport(self, report):
        self._print(report)

    def pytest_collectreport(self, report):
        self._print(report)

    def _print(self, report):
        if self.rank and report.failed:
            self.writer.sep("_", f"rank {self.rank}: {report.nodeid} ({report.when})")
            report.toterminal(self.writer)
            self.writer.flush()

    # ------------------------------------------------------------------ timeouts

    @pytest.hookimpl(tryfirst=True)
    def pytest_timeout_set_timer(self, item, settings):
        """Limit one test as pytest-timeout does, but also print the earlier failures."""
        if settings.method != "thread":
            return None
        words = f"{item.nodeid}: not finished after {settings.timeout:g} s"
        timer = self._timer(settings.timeout, self._end, words)
        item.cancel_timeout = timer.cancel
        return True

    def pytest_keyboard_interrupt(self):
        self.interrupted.set()

    def pytest_sessionfinish(self, session):
        if self.late:
            session.exitstatus = TOO_LATE

    def _deadline(self, seconds: float):
        words = f"not finished after {seconds:g} s"
        self.late = True
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if not self.interrupted.wait(PATIENCE):
            self._end(words, TOO_LATE)
        time.sleep(GRACE)
        os._exit(TOO_LATE)

    def _end(self, words: str, code: int = 1):
        """Print stacks, failures and skips, and end the process; runs in a separate thread."""
        self.config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
        self.writer.line()
        self.writer.sep("!", words if self.rank == 0 else f"rank {self.rank}: {words}")
        faulthandler.dump_traceback(sys.__stderr__)
        if self.rank == 0:
            reporter = self.config.pluginmanager.getplugin("terminalreporter")
            reporter.summary_errors()
            reporter.summary_failures()
            reporter.short_test_summary()
        self.writer.flush()
        sys.__stderr__.flush()
        if self.rank:
            time.sleep(PATIENCE)  # mpirun ends rank 0 as soon as another rank has ended
        os._exit(code)

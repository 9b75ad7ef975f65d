"""A line of `mpilbm info`, and how it is found: by child processes and from installed packages."""

import signal
import subprocess
from dataclasses import dataclass
from importlib import metadata

from mpilbm.core.machine import processes

SECONDS = 30  # for a child process to answer


@dataclass(frozen=True)
class Fact:
    """A line of the report; `fix` solves a problem and is empty if there is none."""

    section: str
    name: str
    value: str
    fix: str = ""


def ask(question: str) -> tuple[list[str], str]:
    """The lines that a child Python prints, or [] and the last line of its error.

    The child is not a rank of the launcher that may have started this process.
    """
    from mpilbm.parallel.launcher import without_launcher

    environment = processes.environment(without_launcher())
    try:
        done = processes.run(processes.python(question), env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {SECONDS} s"
    if done.returncode == 0:
        return done.stdout.split("\n")[:-1], ""
    if done.returncode < 0:
        return [], f"it crashed ({signal.Signals(-done.returncode).name})"
    error = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
    return [], error[-1]


def version(*distributions: str) -> str | None:
    """The version of the first of these distributions that is installed."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None

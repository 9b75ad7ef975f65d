"""The state of a run, from the files in its folder: whether it runs, how it ended, and its step."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpilbm.core.errors import INTERRUPTED
from mpilbm.core.printable import one_line
from mpilbm.core.units import duration
from mpilbm.outputs.core.summary import DONE, RUNNING, STATUS
from mpilbm.storage.directory import REPORT, SUMMARY, owned
from mpilbm.storage.lock import holder_of
from mpilbm.storage.tables import BEFORE
from mpilbm.view.results.tables import last_rows

KILLED, NOT_STARTED = "killed", "not started"
PAUSED = STATUS[4], STATUS[INTERRUPTED]  # on request, by a signal or a limit of time
TAIL_BYTES = 1 << 16  # of a CSV file, more than a row has
STEP_IN_NAME = re.compile(r"_([0-9]{9,18})\.")


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How far a run is, or how it ended.

    status   "running", "killed" (it ended without its last message), "not started", or that of
             summary.json: "done", "stopped", "interrupted", "unstable", "refused", "failed", …
    reason   a sentence of the run about its end, or ""
    step     the last step of which there is a file or a row
    first    the step from which it started, `last` the one at which it ends; 0 if unknown
    seconds  from its start to its end, or to the newest file
    host     another host, whose process holds the folder; whether it still runs is unknown here
    """

    status: str
    reason: str = ""
    step: int = 0
    first: int = 0
    last: int = 0
    seconds: float = 0.0
    host: str = ""

    @property
    def level(self) -> str:
        """Of the status: "good", "fair" (it runs, or was stopped on request) or "poor"."""
        if self.status == DONE:
            return "good"
        return "fair" if self.status in (RUNNING, *PAUSED) else "poor"

    @property
    def ended(self) -> bool:
        """Whether summary.json was written at the end of the run, and not at its start only."""
        return self.status not in (RUNNING, KILLED, NOT_STARTED)

    @property
    def rate(self) -> float:
        """Steps per second; 0 if it is unknown."""
        return (self.step - self.first) / self.seconds if self.seconds > 0 else 0.0

    @property
    def where(self) -> str:
        """The status, with the host if it is another one."""
        return f"{self.status} on {one_line(self.host)}" if self.host else self.status

    @property
    def _doubt(self) -> str:
        """What limits the statement that a run on another host is running."""
        return ", if it has not been killed" if self.host else ""

    @property
    def sentence(self) -> str:
        """`killed at step 2,400 of 60,000`, for titles and messages."""
        of = f" of {self.last:,}" if self.last and self.last != self.step else ""
        return f"{self.where} at step {self.step:,}{of}{self._doubt}"

    def line(self) -> str:
        """`running: step 1200/20000 (6 %)  35 steps/s  9 min left`, for a terminal."""
        of = f"/{self.last} ({100 * self.step // self.last} %)" if self.last else ""
        parts = [f"{self.where}{self._doubt}: step {self.step}{of}"]
        if self.rate:
            parts.append(f"{self.rate:.3g} steps/s")
            if self.status == RUNNING and self.last > self.step:
                parts.append(f"{duration((self.last - self.step) / self.rate)} left")
        return "  ".join(parts) + (f"\n{one_line(self.reason)}" if self.reason else "")


def state_of(folder: Path, summary: Mapping[str, Any]) -> RunState:
    """The state of the run in a folder; `summary`: the content of its summary.json, or {}."""
    status = str(summary.get("status", NOT_STARTED))
    reason, first = str(summary.get("reason") or ""), whole(summary, "first_step") or 0
    last, known = whole(summary, "last_step") or 0, whole(summary, "steps")
    if status not in (RUNNING, NOT_STARTED):
        step = _last_step(_files(folder), first) if known is None else known
        seconds = summary.get("wall_seconds")
        seconds = float(seconds) if isinstance(seconds, int | float) else 0.0
        return RunState(
            status=status, reason=reason, step=step, first=first, last=last, seconds=seconds
        )
    if not summary:
        reason = f"no {SUMMARY}: the run was stopped before its first step, or the file was removed"
        return RunState(status=NOT_STARTED, reason=reason, step=_last_step(_files(folder), first))
    started = _modified(folder / SUMMARY)
    ages = {path: _modified(path) - started for path in _files(folder)}
    # files older than a restart are of the previous run, which may have been at a later step
    new = [path for path, age in ages.items() if age >= 0 or not first]
    step = max(known or 0, _last_step(new, first))
    holder = holder_of(folder)
    active = holder is not None and (holder.alive or holder.elsewhere)
    return RunState(
        status=RUNNING if active else KILLED,
        reason=reason,
        step=step,
        first=first,
        last=last,
        seconds=max([0.0, *ages.values()]),
        host=holder.host if holder and holder.elsewhere else "",
    )


def whole(summary: Mapping[str, Any], key: str) -> int | None:
    """A whole number in the summary, None if it is missing or damaged."""
    value = summary.get(key)
    return value if isinstance(value, int) else None


def _files(folder: Path) -> list[Path]:
    """The files that the run has written since its start, with those of earlier parts of it."""
    return [path for path in owned(folder) if path.name not in (SUMMARY, REPORT)]


def _modified(path: Path) -> float:
    """When a file was written; 0 if an active run has removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _last_step(paths: Iterable[Path], first: int) -> int:
    """The largest step, from `first` on, in the names of files and in the rows of tables; or 0."""
    return max((step for path in paths for step in _steps(path) if step >= first), default=0)


def _steps(path: Path) -> Iterator[int]:
    """The step in the name of a file, or that of the last row of a table."""
    if re.search(BEFORE, path.stem):
        return
    if found := STEP_IN_NAME.search(path.name):
        yield int(found[1])
    elif path.suffix == ".csv":
        yield from _of_rows(path)
    elif path.suffix == ".h5":
        yield from _of_table(path)


def _of_rows(path: Path) -> Iterator[int]:
    """The step in the last complete row of a CSV file."""
    try:
        _, rows = last_rows(path, TAIL_BYTES)
    except OSError:
        return
    cell = rows[-1].partition(",")[0] if rows else ""
    if cell.isdecimal():
        yield int(cell)


def _of_table(path: Path) -> Iterator[int]:
    """The step of the last row of an HDF5 table, in which rows that are not written have -1."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            steps = file["step"][:]
    except (OSError, RuntimeError, KeyError, ValueError):  # incomplete, or another file
        return
    if steps.dtype.kind in "iu" and steps.size:
        yield int(steps.max())

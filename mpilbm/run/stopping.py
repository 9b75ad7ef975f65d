"""Ends a run early, with all ranks at the same step: signals and the limits of time."""

import os
import signal
import threading
import time

from mpilbm.errors import Terminated
from mpilbm.storage.background import GUESSED_BYTES_PER_SECOND

SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Seconds between two agreements, and from one to the next at most twice as many steps.
INTERVAL = 1.0


class Signals:
    """Stores in `caught` the signal that has arrived, for the ranks to agree on an early end.

    While `stepping` there is a state to save. Before, SIGINT (Ctrl-C), SIGTERM and SIGHUP end the
    process, and SIGUSR1 is stored. A second Ctrl-C also ends the process; since a launcher may
    forward the signal that the terminal has sent to all processes, two within INTERVAL are one.
    """

    def __init__(self):
        self.caught, self.stepping = "", False
        self._then = float("inf")
        self._handlers = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in SIGNALS if number not in _ignored()]
            self._handlers = {number: signal.signal(number, self._catch) for number in heard}
        return self

    def __exit__(self, kind, error, trace):
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _catch(self, number, frame):
        now = time.monotonic()
        if number in (signal.SIGTERM, signal.SIGHUP) and not self.stepping:
            raise Terminated(signal.Signals(number).name, number)
        if number == signal.SIGINT and (not self.stepping or now > self._then + INTERVAL):
            raise KeyboardInterrupt
        self.caught, self._then = signal.Signals(number).name, min(now, self._then)


def _ignored() -> set[int]:
    """SIGINT where a shell runs the job in the background, SIGHUP under nohup."""
    numbers = signal.SIGINT, signal.SIGHUP
    return {number for number in numbers if signal.getsignal(number) == signal.SIG_IGN}


def time_limit(walltime: float | None, clock, environment=os.environ) -> tuple[float, str]:
    """When a run must have ended, in seconds of its clock, and the name of that limit.

    The earlier of `walltime` and the end of the SLURM job, if SLURM_JOB_END_TIME is set; infinity
    and "" without limits. An end in the past belongs to an earlier job and is no limit.
    """
    limits = [(float("inf"), "")]
    if walltime is not None:
        limits.append((walltime, f"wall-time limit of {walltime:g} s"))
    end = environment.get("SLURM_JOB_END_TIME", "")
    left = int(end) - time.time() if end.isdigit() else 0.0
    if left > 0:
        limits.append((clock.wall + left, "time limit of the SLURM job"))
    return min(limits)


class Stopping:
    """At `next_step` lets the ranks agree on whether to end, by a signal or the limit of time.

    Rank 0 measures the speed and chooses the next such step, about a second ahead. `limit` is the
    result of `time_limit`. The run ends early enough before it to write a checkpoint of
    `state_bytes`, after the longest time so far between two agreements and after the files that
    are still being written.
    """

    def __init__(self, comm, clock, limit: tuple[float, str], state_bytes: int, first: int):
        self.comm, self.clock, self.limit = comm, clock, limit
        self.guessed_seconds = state_bytes / GUESSED_BYTES_PER_SECOND
        self.step, self.next_step = first, first + 1
        self.then, self.longest = clock.wall, INTERVAL

    def agree(
        self, step: int, caught: str = "", checkpoint_seconds: float = 0.0, left: float = 0.0
    ) -> str:
        """Why all ranks end here, or "" to go on until the new `next_step`.

        `caught` is the signal that this rank has seen; `checkpoint_seconds` what a checkpoint took,
        0 if that is not known yet; `left` what files that are still written may take.
        """
        caught = self.comm.gather(caught)
        saving = (checkpoint_seconds or self.guessed_seconds) + left
        decision = self._decide(step, caught, saving) if caught is not None else None
        reason, self.next_step = self.comm.bcast(decision)
        self.step, self.then = step, self.clock.wall
        return reason

    def _decide(self, step, caught, saving) -> tuple[str, int]:
        done = step - self.step
        seconds = max(self.clock.wall - self.then, 1e-9)
        self.longest = max(self.longest, seconds)
        ahead = min(int(INTERVAL * done / seconds), 2 * done)
        reason = next(filter(None, caught), "")
        if not reason and self._time_is_up(saving):
            reason = self.limit[1]
        return reason, step + max(1, ahead)

    def _time_is_up(self, saving) -> bool:
        margin = self.longest + INTERVAL + 2 * saving
        return self.clock.wall + margin > self.limit[0]

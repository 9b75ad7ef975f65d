"""Ends a run early, with all ranks at the same step: signals and the wall-time limit."""

import signal
import threading

SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
# Seconds between two agreements, and from one to the next at most twice as many steps.
INTERVAL = 1.0
GUESSED_BYTES_PER_SECOND = 2e8


class Stopping:
    """Collects signals while it is entered, and at `next_step` lets the ranks agree on them.

    Rank 0 measures the speed and chooses the next such step, about a second ahead. `limit` is
    the wall time in seconds or None; a checkpoint of `state_bytes` must still fit into it.
    """

    def __init__(self, comm, clock, limit: float | None, state_bytes: int, first: int):
        self.comm, self.clock, self.limit = comm, clock, limit
        self.guessed_seconds = state_bytes / GUESSED_BYTES_PER_SECOND
        self.step, self.next_step = first, first + 1
        self.then = clock.wall
        self.caught = ""
        self._handlers = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.signal(number, self._catch) for number in SIGNALS}
        return self

    def __exit__(self, kind, error, trace):
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _catch(self, number, frame):
        self.caught = signal.Signals(number).name

    def agree(self, step: int, checkpoint_seconds: float = 0.0) -> str:
        """Why all ranks end here, or "" to go on until the new `next_step`.

        `checkpoint_seconds` is what a checkpoint took, 0 if that is not known yet.
        """
        caught = self.comm.gather(self.caught)
        decision = self._decide(step, caught, checkpoint_seconds) if caught is not None else None
        reason, self.next_step = self.comm.bcast(decision)
        self.step, self.then = step, self.clock.wall
        return reason

    def _decide(self, step, caught, checkpoint_seconds) -> tuple[str, int]:
        done = step - self.step
        seconds = max(self.clock.wall - self.then, 1e-9)
        ahead = min(int(INTERVAL * done / seconds), 2 * done)
        reason = next(filter(None, caught), "")
        if not reason and self._time_is_up(checkpoint_seconds or self.guessed_seconds):
            reason = f"wall-time limit of {self.limit:g} s"
        return reason, step + max(1, ahead)

    def _time_is_up(self, checkpoint_seconds) -> bool:
        margin = 2 * (INTERVAL + checkpoint_seconds)
        return self.limit is not None and self.clock.wall + margin > self.limit

"""Where the time of a step goes, on the device and on the host: a few steps are timed."""

from time import perf_counter

EVERY = 255  # odd, so that steps of both parities are timed


class StepTimes:
    """Means over timed steps: one in `every` is timed on the device, another one on the host.

    ```
    bulk stream   |begin| lists | bulk planes ...............|done|
    edge stream                 | edge planes |ready|    |..........arrived|
                        |<------ edge ------->|<--- bulk --->|<-exchange-->|
    ```

    `split` has the seconds of `edge`, until what is to be sent is ready; of `bulk`, the planes
    that follow; of the `exchange`, as far as it is seen once all planes are done: together the
    device's time for a step. `host` is what the host does in a step, its waiting left out; it runs
    beside the device and is seen only where it takes longer.
    """

    def __init__(self, device):
        self.every, self._bulk = EVERY, device.stream("bulk")
        self._events: tuple | None = None  # of the last timed step: read when it is long over
        self._device, self._steps = {"edge": 0.0, "exchange": 0.0, "bulk": 0.0}, 0
        self._travelling, self._host, self._host_steps = 0.0, 0.0, 0
        self._single, self._played, self._playing = 0, 0, 0.0

    def untimed(self, step: int) -> int:
        """How many steps from this one on come before the next that is timed."""
        phase, half = step % self.every, self.every // 2
        return (half if phase <= half else self.every - 1) - phase

    def played(self, steps: int, seconds: float) -> None:
        """The host took so long to enqueue steps that had been recorded."""
        self._played, self._playing = self._played + steps, self._playing + seconds

    def run(self, step: int, work, waiting) -> None:
        """Do a step's `work(timed)`; it returns timed events: ready, done, arrived of each pass.

        `waiting.waited`: seconds that the host has waited in such work, all in all.
        """
        self._single += 1
        phase = step % self.every
        if phase == self.every - 1:
            self._read()
            begin = self._bulk.record(timed=True)
            self._events = (begin, *work(True))
        elif phase == self.every // 2:
            start = perf_counter() - waiting.waited
            work(False)
            self._host += perf_counter() - waiting.waited - start
            self._host_steps += 1
        else:
            work(False)

    def _read(self) -> None:
        """Add what the events of the last timed step tell."""
        if self._events is None:
            return
        begin, *others = self._events
        seconds, before = [event.seconds_since(begin) for event in others], 0.0
        for ready, done, arrived in zip(*(seconds[k::3] for k in range(3)), strict=True):
            self._device["edge"] += ready - before
            self._device["bulk"] += max(0.0, done - ready)
            self._device["exchange"] += max(0.0, arrived - max(ready, done))
            self._travelling += arrived - ready
            before = max(done, arrived)
        self._steps, self._events = self._steps + 1, None

    @property
    def host(self) -> float | None:
        """Mean seconds of the host's work in a step so far; None if not known."""
        if not self._host_steps:
            return None
        alone = self._host / self._host_steps * self._single
        return (alone + self._playing) / (self._single + self._played)

    @property
    def split(self) -> dict[str, float] | None:
        """Mean seconds of a step, by `edge`, `exchange`, `bulk` and `host`; None if not known."""
        self._read()
        if not (self._steps and self._host_steps):
            return None
        device = {name: seconds / self._steps for name, seconds in self._device.items()}
        return device | {"host": self.host}

    @property
    def hidden(self) -> float | None:
        """Share of the exchange behind which planes were computed; None if not known."""
        self._read()
        if self._travelling <= 0:
            return None
        return 1 - self._device["exchange"] / self._travelling

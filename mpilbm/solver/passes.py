"""A pass over the cells of a slab: edge planes first, what leaves them travels behind the bulk."""

from mpilbm.layouts.grid import Grid


class Pass:
    """A kernel over the cells of a slab, its edge planes first, and what must travel after it.

    ```
    bulk stream   | lists |   bulk planes ..........................|        | next lists …
                          |                                                  |
    edge stream           | edge planes |ready                               |
                                        |                                    |
    exchange                      start |========== arrival() =======|arrived|
    ```

    The edge is as many planes as a slab holds of its neighbour's. Edge and bulk run the same
    kernel, and no cell touches what another cell of the same pass does, so their order cannot be
    seen in a single bit. What is enqueued later into the bulk stream comes after all of the pass,
    and edge planes after what is in the bulk stream then.
    """

    def __init__(self, device, grid: Grid, slab, launch, exchange):
        self.edge, self.bulk = device.stream("edge"), device.stream("bulk")
        self.launch, self.exchange = launch, exchange
        first, end = grid.interior
        lower, upper = slab.lower is not None, slab.upper is not None
        begin = min(first + grid.ghost * lower, end)
        self.inner = begin, max(begin, end - grid.ghost * upper)
        self.edges = [(first, self.inner[0], 1), (self.inner[1], end, 1)]
        if lower and upper and grid.ghost == 1:
            self.edges = [(first, end, max(1, end - 1 - first))]
        self.alone = not (lower or upper)

    @property
    def waited(self) -> float:
        """Seconds that the host has waited for the device and for other ranks, all in all."""
        return self.exchange.waited

    def run(self, timed: bool = False) -> tuple:
        """Compute all planes and exchange what leaves the slab.

        If `timed`, it returns three events: what is to be sent is ready, all planes are computed,
        and what comes has arrived.
        """
        return (self._compute if self.alone else self._compute_and_exchange)(timed)

    def _compute(self, timed: bool) -> tuple:
        begin = self.bulk.record(timed) if timed else None
        self.launch(self.bulk, *self.inner)
        done = self.bulk.record(timed) if timed else None
        self.exchange.wait(self.bulk.flush)
        return begin, done, begin  # nothing travels

    def _compute_and_exchange(self, timed: bool) -> tuple:
        self.edge.wait(self.bulk.record())
        for planes in self.edges:
            self.launch(self.edge, *planes)
        ready = self.edge.record(timed)
        self.launch(self.bulk, *self.inner)
        done = self.bulk.record(timed) if timed else None
        self.exchange.start(ready)
        self.exchange.wait(self._flush)
        arrived = self.exchange.arrival()
        if arrived is not None:
            self.bulk.wait(arrived)
        if timed:
            if arrived is not None:
                self.edge.wait(arrived)
            arrived = self.edge.record(timed)
            self.edge.flush()
        return ready, done, arrived

    def _flush(self) -> None:
        self.edge.flush()
        self.bulk.flush()


class InTurn:
    """Passes one after another, as one: each begins behind all of the one before."""

    def __init__(self, passes: list[Pass]):
        self.passes = passes

    @property
    def waited(self) -> float:
        """Seconds that the host has waited, all in all."""
        return sum(one.waited for one in self.passes)

    def run(self, timed: bool = False) -> tuple:
        """The work of all, and the events of each, one after another."""
        return tuple(event for one in self.passes for event in one.run(timed))

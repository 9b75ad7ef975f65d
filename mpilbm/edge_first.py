"""A pass over the cells of a slab: edge planes first, what leaves them travels behind the bulk."""

from time import perf_counter

from mpilbm.layouts.grid import Grid


class Pass:
    """A kernel over the cells of a slab, its edge planes first, and what must travel after it.

    ```
    bulk stream   | lists |   bulk planes ...........................| next lists
                          |                                          |
    edge stream           | edge planes |                            |
                                        |                            |
    host, MPI                           | start ===== finish ========|
    ```

    The host waits for the edge planes alone. Edge and bulk run the same kernel, and no cell touches
    what another cell of the same pass does, so their order cannot be seen in a single bit.
    """

    def __init__(self, device, grid: Grid, slab, launch, exchange):
        self.edge, self.bulk = device.stream("edge"), device.stream("bulk")
        self.launch, self.exchange = launch, exchange
        first, end = grid.interior
        lower, upper = slab.lower is not None, slab.upper is not None
        self.inner = first + lower, end - upper
        if lower and upper:
            self.edges = first, end, max(1, end - 1 - first)
        else:
            self.edges = (first, first + lower, 1) if lower else (end - upper, end, 1)
        self.alone = not (lower or upper)
        self.hidden: list[float] = []

    def run(self, sample: bool = False) -> None:
        """Compute all planes and exchange what leaves the slab.

        With `sample` it also notes the share of the exchange, from the edge planes being ready to
        its end, during which bulk planes were computed.
        """
        if self.alone:
            self.launch(self.bulk, *self.inner)
            self.bulk.flush()
            return
        self.edge.wait(self.bulk.record())
        self.launch(self.edge, *self.edges)
        edges_done = self.edge.record(timed=sample)
        self.launch(self.bulk, *self.inner)
        bulk_done = self.bulk.record(timed=sample) if sample else None
        edges_done.synchronize()
        start = perf_counter()
        self.exchange.start()
        self.bulk.flush()
        self.exchange.finish()
        if sample:
            seconds = perf_counter() - start
            self.hidden.append(min(1.0, bulk_done.seconds_since(edges_done) / seconds))

"""Exchange of the planes next to a neighbouring rank. MPI is imported only when ranks talk."""

from time import perf_counter

from mpilbm.halo.plan import Plan
from mpilbm.registry import Parameters


class Exchange:
    """One plan over one set of arrays: prepared once, run every step.

    ```
    edge stream  | edge kernels |ready                     arrived| next edge kernels …
    host                        | start()          arrival() |
    messages                    |====== planes travel ======------|
    bulk stream  | bulk kernel ................................|  | next lists, bulk kernel …
    ```

    From `ready` until `arrived` nobody writes what is sent or touches what is received. Who waits
    for these two events is the exchange's own affair: the host, where MPI must be told, or streams
    alone, so that the host may be steps ahead of the device.
    """

    in_streams = False  # whether streams alone do all of it, so that it can be recorded
    waited = 0.0  # seconds that the host has spent in waiting, all in all

    def start(self, ready=None) -> None:
        """Send everything off, once the event `ready` is reached; None: it is ready."""
        raise NotImplementedError

    def arrival(self):
        """The event after which kernels see what has come; None if the host has waited for it.

        To be called once after each start(); between them the host may do something else.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until everything has gone and come."""
        arrived = self.arrival()
        if arrived is not None:
            self.wait(arrived.synchronize)

    def wait(self, blocking, *arguments):
        """What `blocking(*arguments)` returns; its seconds are counted."""
        begin = perf_counter()
        try:
            return blocking(*arguments)
        finally:
            self.waited += perf_counter() - begin

    def free(self) -> None:
        """Give back what the exchange holds."""


class Exchanger:
    """The exchanges of one rank; `make(plan, arrays)` makes one. Usable in a `with`.

    `recordings`: of steps, see Replay; they hold exchanges, and so are dropped before these.
    """

    def __init__(self, make):
        self._make, self.recordings = make, {}
        self._exchanges: list[Exchange] = []

    def prepare(self, plan: Plan, arrays) -> Exchange:
        """Set up one exchange between 1-D `arrays`, which must stay where they are."""
        self._exchanges.append(self._make(plan, tuple(arrays)))
        return self._exchanges[-1]

    def close(self) -> None:
        """Free all exchanges. Waits for nobody, so it is safe when another rank has failed."""
        self.recordings.clear()
        while self._exchanges:
            self._exchanges.pop().free()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class Halo(Parameters):
    """How planes travel between ranks."""

    def resolve(self, comm, device) -> tuple["Halo", str]:
        """The way that is taken and why; the same on all ranks."""
        return self, "chosen in the case"

    def open(self, slab, comm, device) -> Exchanger:
        """The exchanger of this rank's slab."""
        raise NotImplementedError

"""Exchange of the planes next to a neighbouring rank. MPI is imported only when ranks talk."""

from mpilbm.halo.plan import Plan
from mpilbm.registry import Parameters


class Exchange:
    """One plan over one set of arrays: prepared once, run every step.

    ```
    edge stream  | edge kernels |                                    | next step …
    host                        | start()                   finish() |
    messages                    |====== planes travel ======|        |
    bulk stream  | bulk kernel ................................|     |
    ```

    start() is called once the host knows that the data to send are ready. Until finish() nobody
    writes what is sent or touches what is received. When finish() returns, kernels launched from
    then on see what has come.
    """

    def start(self) -> None:
        """Send everything off."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until everything has gone and come."""
        raise NotImplementedError

    def free(self) -> None:
        """Give back what the exchange holds."""


class Exchanger:
    """The exchanges of one rank; `make(plan, arrays)` makes one. Usable in a `with`."""

    def __init__(self, make):
        self._make = make
        self._exchanges: list[Exchange] = []

    def prepare(self, plan: Plan, arrays) -> Exchange:
        """Set up one exchange between 1-D `arrays`, which must stay where they are."""
        self._exchanges.append(self._make(plan, tuple(arrays)))
        return self._exchanges[-1]

    def close(self) -> None:
        """Free all exchanges. Waits for nobody, so it is safe when another rank has failed."""
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

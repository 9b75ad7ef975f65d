"""How fast messages go to and fro between two ranks, by each way that planes may take."""

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import click
import numpy as np

from mpilbm.backends import cpu
from mpilbm.bench.table import facts, markdown, write_json
from mpilbm.errors import CaseError
from mpilbm.halo.plan import Plan, Transfer
from mpilbm.parallel import gpu_aware, slabs
from mpilbm.parallel.agree import on_root, together
from mpilbm.registry import make, names
from mpilbm.run.run import open_device

SIZES = (8, 64, 512, 2**12, 2**15, 2**18, 2**21, 2**24, 2**26)  # bytes
BATCHES = 5
MOST_ROUNDS, LEAST_ROUNDS, BYTES = 50, 2, 2**25  # of a batch
UPWARDS = 1


class Host:
    """Host memory as a device, without a compiler."""

    kind, identity = "cpu", ""

    def __init__(self):
        self._stream = cpu.Stream()

    def stream(self, priority: str) -> cpu.Stream:
        """The only stream."""
        return self._stream

    def allocate(self, count: int, dtype) -> np.ndarray:
        """A 1-D array of zeros."""
        return np.zeros(count, dtype)


@dataclass(frozen=True)
class Way:
    """Seconds that messages of so many bytes took one way; or why there are none."""

    halo: str
    memory: str
    sizes: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    problem: str = ""

    @property
    def latency(self) -> float:
        """Seconds of the smallest message."""
        return self.seconds[0]

    @property
    def bandwidth(self) -> float:
        """Bytes a second of the largest message."""
        return self.sizes[-1] / self.seconds[-1]

    def row(self) -> dict:
        """All that a program may want to know."""
        if self.problem:
            return asdict(self)
        return asdict(self) | {"latency": self.latency, "bandwidth": self.bandwidth}


def measure(comm, sizes=SIZES) -> list[Way]:
    """All ways between the first and the last rank. Collective."""
    backend = together(comm, make("backends", "auto").resolve)
    kinds = comm.allgather(backend.name)
    device = open_device(backend, comm)[1] if set(kinds) == {"cuda"} else None
    verdict = gpu_aware.agreed(comm, gpu_aware.verdict()) if device else None
    ends = comm.rank in (0, comm.size - 1)
    pair = comm.Split(ends)
    found = []
    if ends:
        found.append(way("direct", "host", pair, Host(), sizes))
        for name in sorted(set(names("halo")) - {"auto", "local"}) if device else ():
            if name == "direct" and not verdict.answer:
                found.append(Way(name, "GPU", problem=verdict.reason))
            else:
                found.append(way(name, "GPU", pair, device, sizes))
    pair.Free()
    return found


def way(name: str, memory: str, pair, device, sizes) -> Way:
    """One way between two ranks."""
    slab = slabs.split((2, 1, 1), 2, False)[pair.rank]
    try:
        with make("halo", name).open(slab, pair, device) as exchanger:
            taken = tuple(one_way(exchanger, device, pair, size) for size in sizes)
    except CaseError as error:
        return Way(name, memory, problem="; ".join(error.problems))
    return Way(name, memory, tuple(sizes), taken)


def one_way(exchanger, device, pair, size: int) -> float:
    """Seconds of a message: half the time of a round, the median of some batches after a first."""
    array = device.allocate(size, np.uint8)
    there, back = (
        exchanger.prepare(Plan((Transfer(to, 0, 0, size),), (Transfer(-to, 0, 0, size),)), [array])
        for to in (UPWARDS, -UPWARDS)
    )

    def rounds(count: int) -> float:
        """Seconds of some rounds, on the slower of the two."""
        pair.barrier()
        start, ready = perf_counter(), None
        for _ in range(count):
            for exchange in (there, back):
                exchange.start(ready)
                ready = exchange.arrival()
        if ready is not None:
            ready.synchronize()
        return max(pair.allgather(perf_counter() - start))

    count = min(MOST_ROUNDS, max(LEAST_ROUNDS, BYTES // size))
    rounds(count)
    return median(rounds(count) for _ in range(BATCHES)) / count / 2


def report(comm, command: str, file: Path | None) -> None:
    """Measure, print and write as JSON. Collective."""
    found = measure(comm)
    on_root(comm, deliver, found, facts(comm, command), file)


def deliver(found: list[Way], known: dict, file: Path | None) -> None:
    """Print a table and a sentence a way; write all."""
    click.echo("\n".join(lines(found)))
    if file:
        rows = [each.row() for each in found]
        write_json(known | {"pingpong": rows}, file)


def lines(found: list[Way]) -> list[str]:
    """The table of µs and GB/s by bytes and way, and what it comes to."""
    measured = [each for each in found if each.seconds]
    titles = [f"{each.halo}, {each.memory} memory" for each in measured]
    head = ["bytes", *(f"{title}: {unit}" for title in titles for unit in ("µs", "GB/s"))]
    rows = [
        [size, *(text for each in measured for text in _figures(size, each.seconds[k]))]
        for k, size in enumerate(measured[0].sizes)
    ]
    said = [
        f"{title}: latency {1e6 * each.latency:.3g} µs, bandwidth {each.bandwidth / 1e9:.3g} GB/s"
        for title, each in zip(titles, measured, strict=True)
    ]
    problems = [f"{each.halo}, {each.memory} memory: not measured: {each.problem}"
                for each in found if each.problem]  # fmt: skip
    return ["one way, between the first and the last rank", *markdown(head, rows), *said, *problems]


def _figures(size: int, seconds: float) -> tuple[str, str]:
    return f"{1e6 * seconds:.3g}", f"{size / seconds / 1e9:.3g}"

"""Measures messages: exchanges of all ranks in a ring, and a ping-pong between two ranks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from mpilbm.backends import Device
from mpilbm.backends.cpu.kernels import Stream
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names
from mpilbm.halo import Exchange, Exchanger, Halo, Plan, Transfer
from mpilbm.parallel import Communicator, MessagePassing, gpu_aware, on_root, slabs, together
from mpilbm.parallel.ranks import abort_on_error
from mpilbm.run.preflight.installation import collect, show
from mpilbm.run.setup import open_device
from mpilbm.view.bench.table import deliver, facts, markdown, require_place

# --------------------------------------------------------------------------- exchanges in a ring

LINK_SIZES = tuple(2**k for k in (10, 13, 16, 18, 20, 22, 24, 26))  # bytes to each neighbour
REPEATS = 7
EXCHANGES = 5  # of a repeat
VALUE = np.dtype(np.float32)


def link(
    halo: Halo, comm: Communicator, device: Device, sizes: Sequence[int] = LINK_SIZES
) -> dict[str, Any] | None:
    """Time exchanges in a ring with this halo, all ranks at once; None for one rank. Collective.

    As in a time step, each rank sends `size` bytes to each neighbour and receives as many.
    `points`: (bytes sent by a rank, seconds), of the slowest rank, the median of REPEATS; `latency`
    in seconds and `bandwidth` in bytes sent by a rank per second: see `fit`.
    """
    if comm.size == 1:
        return None
    ring = slabs.split((comm.size, 1, 1), comm.size, True)[comm.rank]
    points, up, down = [], 1, -1
    with halo.open(ring, comm, device) as exchanger:
        for size in sizes:
            count = size // VALUE.itemsize
            array = device.allocate(4 * count, VALUE)  # a part for each message of a rank
            sends = Transfer(up, 0, 0, count), Transfer(down, 0, count, count)
            receives = Transfer(down, 0, 2 * count, count), Transfer(up, 0, 3 * count, count)
            exchange = exchanger.prepare(Plan(sends, receives), [array])
            _seconds(exchange, comm, device)
            times = [_seconds(exchange, comm, device) for _ in range(REPEATS)]
            points.append((2 * count * VALUE.itemsize, median(times)))
    latency, bandwidth = fit(points)
    return {"points": points, "latency": latency, "bandwidth": bandwidth}


def _seconds(exchange: Exchange, comm: Communicator, device: Device) -> float:
    """Seconds of an exchange on the slowest rank; the host waits only where a time step does."""
    device.synchronize()
    comm.barrier()
    start, arrived = perf_counter(), None
    for _ in range(EXCHANGES):
        exchange.start(arrived)
        arrived = exchange.arrival()
    device.synchronize()
    return max(comm.allgather((perf_counter() - start) / EXCHANGES))


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Latency and bandwidth of seconds = latency + bytes / bandwidth, least relative squares."""
    sizes, seconds = np.array(points, float).T
    matrix = np.stack([1 / seconds, sizes / seconds], axis=1)
    latency, slope = np.linalg.lstsq(matrix, np.ones(len(sizes)), rcond=None)[0]
    if latency < 0 or slope <= 0:  # noise: the shortest time, and the rate of the largest message
        latency, slope = seconds.min(), seconds[-1] / sizes[-1]
    return float(latency), float(1 / slope)


# ------------------------------------------------------------------------------------- ping-pong

PINGPONG_SIZES = (8, 64, 512, 2**12, 2**15, 2**18, 2**21, 2**24, 2**26)  # bytes
BATCHES = 5
MOST_ROUNDS, LEAST_ROUNDS, BYTES = 50, 2, 2**25  # of a batch


class Host:
    """Host memory as a device; needs no compiler."""

    kind, identity, opaque = "cpu", "", False

    def __init__(self) -> None:
        self._stream = Stream()

    def stream(self, priority: str) -> Stream:
        """The only stream."""
        return self._stream

    def allocate(self, count: int, dtype: Any) -> np.ndarray:
        """A 1-D array of zeros."""
        return np.zeros(count, dtype)


@dataclass(frozen=True)
class Route:
    """Seconds of messages in one direction with this halo, by their `sizes` in bytes.

    If nothing could be measured, `problem` is the reason.
    """

    halo: str
    memory: str
    sizes: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    problem: str = ""

    @property
    def title(self) -> str:
        """The halo and the memory in words."""
        return f"{self.halo}, {self.memory} memory"

    @property
    def latency(self) -> float:
        """Seconds of the smallest message."""
        return self.seconds[0]

    @property
    def bandwidth(self) -> float:
        """Bytes per second of the largest message."""
        return self.sizes[-1] / self.seconds[-1]

    def row(self) -> dict[str, Any]:
        """All figures, for JSON."""
        if self.problem:
            return asdict(self)
        return asdict(self) | {"latency": self.latency, "bandwidth": self.bandwidth}


def pingpong(comm: MessagePassing, sizes: Sequence[int] = PINGPONG_SIZES) -> list[Route]:
    """All routes between the first and the last rank; [] on the other ranks. Collective."""
    backend = together(comm, make("backends", "auto").resolve)
    kinds = set(comm.allgather(backend.name))
    device = open_device(backend, comm).device if kinds in ({"cuda"}, {"opencl"}) else None
    verdict = gpu_aware.agreed(comm, gpu_aware.verdict()) if kinds == {"cuda"} else None
    ends = comm.rank in (0, comm.size - 1)
    pair = comm.Split(ends)
    found = []
    if ends:
        found.append(route("direct", "host", pair, Host(), sizes))
        for name in sorted(set(names("halo")) - {"auto", "local"}) if device else ():
            if name == "direct" and verdict and not verdict.answer:
                found.append(Route(name, "GPU", problem=verdict.reason))
            else:
                found.append(route(name, "GPU", pair, device, sizes))
    pair.Free()
    return found


def route(name: str, memory: str, pair: Communicator, device: Any, sizes: Sequence[int]) -> Route:
    """The times of one halo between two ranks; `device` is a Device or a Host."""
    slab = slabs.split((2, 1, 1), 2, False)[pair.rank]
    try:
        with make("halo", name).open(slab, pair, device) as exchanger:
            seconds = tuple(one_way(exchanger, device, pair, size) for size in sizes)
    except CaseError as error:
        return Route(name, memory, problem="; ".join(error.problems))
    return Route(name, memory, tuple(sizes), seconds)


def one_way(exchanger: Exchanger, device: Any, pair: Communicator, size: int) -> float:
    """Seconds of a message: half of a round, the median of some batches after a first one."""
    array = device.allocate(size, np.uint8)
    there, back = (
        exchanger.prepare(Plan((Transfer(to, 0, 0, size),), (Transfer(-to, 0, 0, size),)), [array])
        for to in (1, -1)
    )

    def rounds(count: int) -> float:
        """Seconds of some rounds, on the slower rank."""
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


# -------------------------------------------------------------------- `mpilbm info --probe`


def probe(file: Path | None) -> None:
    """Show the facts of one rank, then measure messages between the ranks of the launcher."""
    with abort_on_error() as comm:
        require_place(file)
        on_root(comm, lambda: show(collect(probe=True)))
        found = pingpong(comm)
        known = facts(comm, "mpilbm info --probe") | {"pingpong": [each.row() for each in found]}
        on_root(comm, deliver, lines(found) if found else [], known, file)


def lines(found: Sequence[Route]) -> list[str]:
    """A table of µs and GB/s by bytes and route, and for each route latency and bandwidth."""
    measured = [each for each in found if not each.problem]
    head = ["bytes", *(f"{each.title}: {unit}" for each in measured for unit in ("µs", "GB/s"))]
    rows: list[list[str]] = []
    for k, size in enumerate(measured[0].sizes):
        times = [each.seconds[k] for each in measured]
        figures = [(f"{1e6 * time:.3g}", f"{size / time / 1e9:.3g}") for time in times]
        rows.append([str(size), *chain(*figures)])
    summary = [
        f"{each.title}: not measured: {each.problem}"
        if each.problem
        else f"{each.title}: latency {1e6 * each.latency:.3g} µs, "
        f"bandwidth {each.bandwidth / 1e9:.3g} GB/s"
        for each in sorted(found, key=lambda each: bool(each.problem))
    ]
    return ["one way, between the first and the last rank", *markdown(head, rows), *summary]

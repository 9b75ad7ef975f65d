"""How long neighbouring ranks take to exchange: latency and bandwidth of the way between them."""

from statistics import median
from time import perf_counter

import numpy as np

from mpilbm.halo.plan import Plan, Transfer
from mpilbm.parallel import slabs

SIZES = tuple(2**k for k in (10, 13, 16, 18, 20, 22, 24, 26))  # bytes sent to each neighbour
REPEATS = 7
EXCHANGES = 5  # of a repeat
VALUE = np.dtype(np.float32)


def measure(halo, comm, device, sizes=SIZES) -> dict | None:
    """Exchanges in a ring by the way `halo`, all ranks at once; None for one rank. Collective.

    As in a step, each rank sends so many bytes to both neighbours and receives as many from both.
    `points`: (bytes sent by a rank, seconds), the slowest rank's, median of REPEATS; `latency` in
    seconds and `bandwidth` in bytes sent by a rank a second: see `fit`.
    """
    if comm.size == 1:
        return None
    ring = slabs.split((comm.size, 1, 1), comm.size, True)[comm.rank]
    points = []
    with halo.open(ring, comm, device) as exchanger:
        for size in sizes:
            count = size // VALUE.itemsize
            array = device.allocate(4 * count, VALUE)
            exchange = exchanger.prepare(_both_ways(count), [array])
            _seconds(exchange, comm, device)
            times = [_seconds(exchange, comm, device) for _ in range(REPEATS)]
            points.append((2 * count * VALUE.itemsize, median(times)))
    latency, bandwidth = fit(points)
    return {"points": points, "latency": latency, "bandwidth": bandwidth}


def _both_ways(count: int) -> Plan:
    """Values to both neighbours, and values from both behind them in the array."""
    pieces = [Transfer(*of, count) for of in ((1, 0, 0), (-1, 0, count))]
    return Plan(
        tuple(pieces),
        tuple(Transfer(*of, count) for of in ((-1, 0, 2 * count), (1, 0, 3 * count))),
    )


def _seconds(exchange, comm, device) -> float:
    """Of one exchange, on the slowest rank; as in steps, the host waits only where it must."""
    device.synchronize()
    comm.barrier()
    start, arrived = perf_counter(), None
    for _ in range(EXCHANGES):
        exchange.start(arrived)
        arrived = exchange.arrival()
    device.synchronize()
    return max(comm.allgather((perf_counter() - start) / EXCHANGES))


def fit(points) -> tuple[float, float]:
    """Latency and bandwidth of seconds = latency + bytes / bandwidth, least relative squares."""
    sizes, seconds = np.array(points, float).T
    matrix = np.stack([1 / seconds, sizes / seconds], axis=1)
    latency, slope = np.linalg.lstsq(matrix, np.ones(len(sizes)), rcond=None)[0]
    if latency < 0 or slope <= 0:  # noise: take each from where it shows
        latency, slope = seconds.min(), seconds[-1] / sizes[-1]
    return float(latency), float(1 / slope)

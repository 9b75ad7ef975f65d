"""Launch shapes chosen by a short measurement, once per device and kernel; kept in the cache."""

import json
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeVar

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Runner
from mpilbm.system import cache

Shape = TypeVar("Shape")

SMALL = 2**19  # cells; smaller boxes use the first shape
BATCH = 2**23  # cells of a trial, in as many launches as that takes
REPEATS = 5


def fastest(
    device: Device,
    text: str,
    box: tuple[int, int, int],
    shapes: Sequence[Shape],
    bind: Callable[[Shape], Runner],
    usable: Callable[[Shape], bool] = lambda shape: True,
) -> Shape:
    """The fastest of some launch shapes (frozen dataclasses) for the kernel with this text.

    `box`: planes, rows and cells in a row; `bind(shape)` makes a launch over planes; shapes that
    are not `usable` are left out, unless none is. The trials
    overwrite the arrays of the launches; therefore shapes are chosen before the initial state is
    set. The result is the same with all shapes, bit for bit, so ranks may choose different shapes.
    """
    planes, rows, nx = box
    if planes * rows * nx < SMALL or len(shapes) == 1:
        return next(filter(usable, shapes), shapes[0])
    offered = [vars(shape) for shape in shapes]
    key = cache.digest(json.dumps([text, device.name, rows, nx, offered]))
    found = cache.get("shape", key)
    for shape in shapes:
        if found == _bytes(shape):
            return shape
    launches = max(1, BATCH // (planes * rows * nx))
    tried = [shape for shape in shapes if usable(shape)] or shapes[:1]
    best = min(tried, key=lambda shape: _seconds(device, bind(shape), planes, launches))
    cache.put("shape", key, _bytes(best))
    return best


def _bytes(shape: Any) -> bytes:
    return json.dumps(vars(shape), sort_keys=True).encode()


def _seconds(device: Device, launch: Runner, planes: int, launches: int) -> float:
    """Median time of so many launches over all planes, after a warm-up.

    They are recorded where the device can, because a launch by the host may take longer than the
    kernel.
    """
    stream, times = device.stream("bulk"), []

    def work() -> None:
        for _ in range(launches):
            launch(stream, 1, 1 + planes)

    work()
    play = device.recording(work) if device.records else work
    for _ in range(1 + REPEATS):
        start = stream.record(timed=True)
        play()
        times.append(stream.record(timed=True).seconds_since(start))
    return median(times[1:])


def forget() -> None:
    """Forget all measurements."""
    cache.remove("shape")

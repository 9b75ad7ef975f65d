"""Launch shapes and ways of stepping, chosen by a short measurement and kept in the cache.

The key of a choice holds everything on which the measured times depend: see `_key`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, TypeVar

from mpilbm.backends import Device
from mpilbm.backends.interfaces import Runner
from mpilbm.core.machine import cache

Shape = TypeVar("Shape")

SMALL = 2**19  # cells; smaller boxes use the first shape
BATCH = 2**23  # cells of a trial, in as many launches as that takes
REPEATS = 5
CODE = "backends", "solver"  # folders with the code that launches kernels


def _key(device: Device, *facts: Any) -> str:
    """Digest of plain facts, the device, its compiler with options, and the launching code."""
    built = device.name, device.compiler, device.kernel_options
    return cache.digest(json.dumps([built, cache.code_digest(*CODE), facts]))


def fastest(
    device: Device,
    text: str,
    box: tuple[int, int, int],
    shapes: Sequence[Shape],
    bind: Callable[[Shape], Runner],
    usable: Callable[[Shape], bool] = lambda shape: True,
    prepare: Callable[[Sequence[Shape]], object] = lambda shapes: None,
    first: int = 1,
) -> Shape:
    """The fastest of some launch shapes (frozen dataclasses) for the kernel with this text.

    text     also of what else the kernel's time depends on, apart from the box and the device
    box      planes, rows and cells in a row; `first`: the number of the first plane in the arrays
    bind     makes a launch over planes; the trials overwrite its arrays, before the initial state
    usable   shapes that are not are left out, unless none is
    prepare  called before all shapes are tried

    The result has the same bits with all shapes, so ranks may choose different ones.
    """
    planes, rows, nx = box
    if planes * rows * nx < SMALL or len(shapes) == 1:
        return next(filter(usable, shapes), shapes[0])
    offered = [vars(shape) for shape in shapes]
    key = _key(device, text, box, offered)
    found = cache.get("shape", key)
    for shape in shapes:
        if found == _bytes(shape):
            return shape
    stream, launches = device.stream("bulk"), max(1, BATCH // (planes * rows * nx))

    def seconds(shape: Shape) -> float:
        trial = _trial(device, partial(bind(shape), stream, first, first + planes), launches)
        return median(trial() for _ in range(REPEATS))

    prepare(shapes)
    best = min([shape for shape in shapes if usable(shape)] or shapes[:1], key=seconds)
    cache.put("shape", key, _bytes(best))
    return best


def fastest_way(
    device: Device, facts: Any, cells: int, ways: Mapping[str, Callable[[], None]]
) -> str:
    """The name of the fastest of some ways to enqueue the same steps.

    `facts`: plain data on which the times depend, apart from the device; `cells`: cells that a step
    updates. The ways are measured by turns, because the clock of a GPU varies, and overwrite the
    arrays.
    """
    key = _key(device, facts, list(ways))
    found = (cache.get("shape", key) or b"").decode()
    if found in ways:
        return found
    times = max(1, BATCH // cells)
    trials = {name: _trial(device, work, times) for name, work in ways.items()}
    rounds = [{name: trial() for name, trial in trials.items()} for _ in range(REPEATS)]
    best = min(ways, key=lambda name: median(seconds[name] for seconds in rounds))
    cache.put("shape", key, best.encode())
    return best


def _bytes(shape: Any) -> bytes:
    return json.dumps(vars(shape), sort_keys=True).encode()


def _trial(device: Device, work: Callable[[], None], times: int) -> Callable[[], float]:
    """A warmed-up function that does the work so many times and returns the seconds.

    The work is recorded where the device can: a launch by the host may take longer than the kernel.
    """
    stream = device.stream("bulk")

    def batch() -> None:
        for _ in range(times):
            work()

    batch()
    play = device.recording(batch) if device.records else batch

    def trial() -> float:
        start = stream.record(timed=True)
        play()
        return stream.record(timed=True).seconds_since(start)

    trial()
    return trial


def forget() -> None:
    """Forget all measurements."""
    cache.remove("shape")

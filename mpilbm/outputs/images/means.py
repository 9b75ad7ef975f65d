"""Means over blocks of cells, the same for any number of ranks.

A block has cells of one or more planes. The cells of a plane are added first, then the planes in
their order, in double precision; so the ranks and threads that computed the planes do not matter.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

Sums = dict[str, np.ndarray]  # name -> sums over the cells of a plane (rows, x[, components])
FLUID = "fluid cells"  # the number of them in a block


class Group(NamedTuple):
    """Sums over `planes` planes from `plane` on, counted from the first one of the part."""

    plane: int
    planes: int
    sums: Sums


def slices(values: Any, stride: Sequence[int]) -> Iterator[Any]:
    """The cells of planes (n, rows, nx, …) that have the same place in their block.

    In the order in which they are added. Arrays are added faster than along short axes.
    """
    for i in range(stride[0]):
        for j in range(stride[1]):
            yield values[:, i :: stride[0], j :: stride[1]]


def plane_sums(fields: Sums, solid: np.ndarray, stride: Sequence[int]) -> Sums:
    """Sums over the fluid cells of each block of one plane; arrays (rows, nx[, k])."""
    if not solid.any():
        count = np.full([n // s for n, s in zip(solid.shape, stride, strict=True)],
                        float(stride[0] * stride[1]))  # fmt: skip
        return {FLUID: count} | {name: _blocks(data, stride) for name, data in fields.items()}
    fluid = ~solid
    found = {FLUID: _blocks(fluid, stride)}
    for name, values in fields.items():
        extra = (1,) * (values.ndim - 2)
        found[name] = _blocks(values * fluid.reshape(*fluid.shape, *extra), stride)
    return found


def _blocks(values: np.ndarray, stride: Sequence[int]) -> np.ndarray:
    """Sums over blocks of a plane."""
    parts = slices(values[None], stride)
    total = next(parts).astype(np.float64)
    for part in parts:
        total += part
    return total[0]


def means_of(planes: Sequence[Sums], rest: Callable[[str], float]) -> tuple[Sums, np.ndarray]:
    """The means over fluid cells, and True where there is none; there the value is rest(name)."""
    total = dict(planes[0])
    for plane in planes[1:]:
        total = {name: total[name] + plane[name] for name in total}
    count = total.pop(FLUID)
    empty, found = count == 0, {}
    for name, values in total.items():
        shape = (*count.shape, *(1,) * (values.ndim - 2))
        mean = values / np.maximum(count, 1).reshape(shape)
        found[name] = np.where(empty.reshape(shape), rest(name), mean)
    return found, empty


class Collector:
    """Collects the sums of planes, in any order and any thread, until blocks are complete.

    `planes` is the number of planes of a block. `complete(block, sums)` is called with those of a
    block in the order of its planes.
    """

    def __init__(self, planes: int, complete: Callable[[int, list[Sums]], None]):
        self.planes, self.complete = planes, complete
        self._lock, self._parts = Lock(), dict[int, dict[int, Group]]()

    def give(self, group: Group) -> None:
        """Add the sums of a plane, or those of a whole block."""
        block = group.plane // self.planes
        with self._lock:
            parts = self._parts.setdefault(block, {})
            parts[group.plane] = group
            if sum(each.planes for each in parts.values()) < self.planes:
                return
            del self._parts[block]
        self.complete(block, [parts[k].sums for k in sorted(parts)])

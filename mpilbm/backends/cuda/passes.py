"""Launches of the moment sweep, with one step or with two in one pass over memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpilbm.backends.cuda.blocks import Kind, Surroundings
from mpilbm.backends.cuda.tiles import Tile
from mpilbm.backends.gpu.launch import GpuLaunch
from mpilbm.codegen.program import Kernel

BESIDE = "special"  # the stream of blocks that meet walls or bodies


def parts_of(
    tile: Tile, begin: int, end: int, stride: int = 1, edge: int = 0
) -> list[tuple[int, int]]:
    """(first plane, end) of each block of a column, as the kernel finds them from its number."""
    planes, stride = planes_and_stride(tile, begin, end, stride, edge)
    step = stride if stride > 1 else planes
    firsts = (begin + number * step for number in range(-(-(end - begin) // max(stride, planes))))
    return [(first, min(first + planes, end)) for first in firsts]


def planes_and_stride(
    tile: Tile, begin: int, end: int, stride: int, edge: int = 0
) -> tuple[int, int]:
    """Planes of a block, and from the first plane of a block to that of the next one."""
    if edge:
        return edge, end - begin - edge
    return (1 if stride > 1 else tile.planes), stride


class SweepLaunch(GpuLaunch):
    """The sweep with its arguments and tile; `further`: the arguments before the planes' numbers.

    `shared`: bytes of shared memory of a block. `edge`: if given, a range is computed at both ends
    only, so many planes each, by one block in each column.
    """

    def __init__(
        self,
        function: Any,
        tile: Tile,
        box: tuple[int, int],
        shared: int,
        kernel: Kernel,
        further: Sequence[Any],
        values: list[Any],
        edge: int = 0,
    ):
        super().__init__(kernel, box, values)
        self._edge = edge
        self._function, self._tile, self._shared, self._further = function, tile, shared, further

    def pieces(self, begin: int, end: int, stride: int) -> list[tuple[int, int, int]]:
        """The range itself: blocks over several planes need no second grid."""
        return [(begin, end, stride)] if begin < end else []

    def call(self, begin: int, end: int, stride: int) -> tuple:
        """(grid, arguments)."""
        (nx, rows), tile = self._box, self._tile
        planes, stride = planes_and_stride(tile, begin, end, stride, self._edge)
        pieces = -(-(end - begin) // max(stride, planes))
        grid = -(-nx // tile.own[0]), -(-rows // tile.own[1]), pieces
        numbers = map(np.int64, (begin, end, stride, planes))
        return grid, (*self._further, *numbers, *self._values)

    def enqueue(self, stream: Any, calls: list[Any]) -> None:
        with stream.cupy:
            for grid, values in calls:
                self._function(grid, self._tile.threads, values, shared_mem=self._shared)


class PassLaunch(GpuLaunch):
    """The sweep with two steps: a kernel for each kind of blocks, in two streams.

    function  the compiled kernel of a kind
    shared    bytes of shared memory of a block
    further   the arguments before those of the blocks
    edge      if given, a range is computed at both ends only, so many planes each, by one block in
              each column
    """

    def __init__(
        self,
        device: Any,
        function: Callable[[Kind], Any],
        tile: Tile,
        around: Surroundings,
        shared: int,
        kernel: Kernel,
        further: Sequence[Any],
        values: list[Any],
        edge: int = 0,
    ):
        super().__init__(kernel, (around.nx, around.rows), values)
        self._device, self._function, self._tile, self._around = device, function, tile, around
        self._shared, self._further, self._edge = shared, further, edge
        self._lists: dict[tuple[int, int, int], list[tuple[Kind, Any, tuple[int, ...]]]] = {}

    def pieces(self, begin: int, end: int, stride: int) -> list[tuple[int, int, int]]:
        """The range itself: blocks over several planes need no second grid."""
        return [(begin, end, stride)] if begin < end else []

    def call(self, begin: int, end: int, stride: int) -> list[tuple[Any, tuple, tuple]]:
        """(function, grid, arguments) of each kind of blocks; the free blocks come last."""
        key = begin, end, stride
        if key not in self._lists:
            self._lists[key] = self._listed(*key)
        planes, stride = planes_and_stride(self._tile, begin, end, stride, self._edge)
        columns = map(np.int32, self._around.columns)
        numbers = map(np.int64, (begin, end, stride, planes))
        after = *columns, *numbers, *self._values
        return [
            (self._function(kind), grid, (*self._further, words, *after))
            for kind, words, grid in self._lists[key]
        ]

    def _listed(self, begin: int, end: int, stride: int) -> list[tuple[Kind, Any, tuple[int, ...]]]:
        """The kinds of blocks, where the words of these blocks are, and the grid of the launch."""
        tile, around = self._tile, self._around
        parts = parts_of(tile, begin, end, stride, self._edge)
        if around.free:
            own = tile.own
            grid = -(-around.columns[1] // own[0]), -(-around.rows // own[1]), len(parts)
            return [(around.whole, np.uint64(0), grid)]
        found = around.blocks(tile, parts)
        return [(kind, self._device.upload(words), (words.size, 1, 1)) for kind, words in found]

    def enqueue(self, stream: Any, calls: list[Any]) -> None:
        for launches in calls:
            *others, last = launches
            if others:
                beside = self._device.stream(BESIDE)
                beside.wait(stream.record())
                with beside.cupy:
                    self._start(others)
                done = beside.record()
            with stream.cupy:
                self._start([last])
            if others:
                stream.wait(done)

    def _start(self, launches: Sequence[tuple[Any, tuple, tuple]]) -> None:
        for function, grid, values in launches:
            function(grid, self._tile.threads, values, shared_mem=self._shared)

"""A device that runs the work of its streams in a random order permitted by their events."""

import random
import time
from collections import deque
from functools import partial

import numpy as np

from mpilbm.backends import cpu
from mpilbm.backends.cpu import compiler
from mpilbm.halo.nccl import NcclExchange
from support.emulated_device import STREAMS
from support.local_world import LocalWorld

PATIENCE = 20.0  # seconds until a device without runnable work fails


class Event:
    """An event recorded in a stream."""

    def __init__(self, device):
        self._device, self.time = device, None

    def reach(self):
        self.time = time.perf_counter()

    def blocks(self):
        return self.time is None

    def synchronize(self):
        self._device.run_until(lambda: not self.blocks())

    def seconds_since(self, earlier):
        self.synchronize()
        earlier.synchronize()
        return self.time - earlier.time


class Stream:
    """A queue of (work, condition that blocks it)."""

    def __init__(self, device):
        self._device, self.queue = device, deque()

    def submit(self, work, blocked=lambda: False):
        self.queue.append((work, blocked))
        self._device.go_on()

    def record(self, timed=False):
        event = Event(self._device)
        self.submit(event.reach)
        return event

    def wait(self, event):
        self.submit(lambda: None, event.blocks)

    def flush(self):
        """Do nothing: a device starts by itself."""

    def synchronize(self):
        self._device.run_until(lambda: not self.queue)


class RandomDevice(cpu.CpuDevice):
    """A CPU device; after each call of the host it runs a random number of queued operations."""

    def __init__(self, seed=0):
        super().__init__(compiler.find())
        self._random = random.Random(seed)
        self._streams = {name: Stream(self) for name in STREAMS}

    def run_one(self):
        """Run one unblocked operation; whether there was one."""
        free = [s for s in self._streams.values() if s.queue and not s.queue[0][1]()]
        if free:
            self._random.choice(free).queue.popleft()[0]()
        return bool(free)

    def go_on(self):
        for _ in range(self._random.choice((0, 0, 0, 1, 2, 8))):
            self.run_one()

    def run_until(self, done):
        end = time.monotonic() + PATIENCE
        while not done():
            if not self.run_one():
                assert time.monotonic() < end, "the device is deadlocked"
                time.sleep(1e-4)

    def synchronize(self):
        for stream in self._streams.values():
            stream.synchronize()

    def copy(self, target, source, stream=None):
        if stream is None:
            self._streams["bulk"].synchronize()
        super().copy(target, source, stream)


class Network:
    """Replaces NCCL between threads: messages have no tags and arrive in order."""

    def __init__(self, world, rank):
        self._world, self._rank = world, rank

    def group(self, sends, receives, stream):
        boxes = [self._world.box(self._rank, peer, 0) for _, peer in sends]
        awaited = [self._world.box(peer, self._rank, 0) for _, peer in receives]

        def post():
            for box, (piece, _) in zip(boxes, sends, strict=True):
                box.put(piece.copy())

        def enqueue():
            stream.submit(post)
            for box, (piece, _) in zip(awaited, receives, strict=True):
                stream.submit(partial(take, box, piece), box.empty)

        return enqueue


def take(box, piece):
    np.copyto(piece, box.get_nowait())


class NcclWorld(LocalWorld):
    """A world whose slabs exchange halos as `nccl` does."""

    def make(self, rank, slab, device, plan, arrays):
        return NcclExchange(slab, Network(self, rank), device, plan, arrays)

    def exchanger(self, rank, slab, device):
        found = super().exchanger(rank, slab, device)
        found._make = partial(self.make, rank, slab, device)
        return found

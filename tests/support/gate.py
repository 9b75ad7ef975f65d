"""Writes of threads that a test delays or lets fail, and actions between two steps."""

import os
import threading

from mpilbm.solver.solver import Solver


def at_step(monkeypatch, step, action):
    original = Solver.step

    def stepping(solver):
        original(solver)
        if solver.steps == step:
            action(solver)

    monkeypatch.setattr(Solver, "step", stepping)


class Gate:
    """os.pwrite that waits in the threads until it is opened, or fails for a file from then on."""

    def __init__(self, monkeypatch):
        self.pwrite, self.open, self.error = os.pwrite, threading.Event(), None
        self.path = ""  # a part of the path of the files for which it fails
        monkeypatch.setattr(os, "pwrite", self)

    def __call__(self, number, data, offset):
        if threading.current_thread() is not threading.main_thread():
            assert self.open.wait(20)
            if self.error and self.path in os.readlink(f"/proc/self/fd/{number}"):
                raise OSError(self.error, os.strerror(self.error))
        return self.pwrite(number, data, offset)

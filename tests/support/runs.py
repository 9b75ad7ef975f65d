"""Complete runs in this process, and the files that they write."""

import json
import os
import signal

import h5py

from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.solver.solver import Solver
from support.outputs_cases import make_case

OUTPUTS = [
    {"name": "checkpoint", "every": 10},
    {"name": "snapshot", "every": 15},
    {"name": "monitor", "every": 5},
]
SHEAR = {"u": ["0.05*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}


def flow(steps=30, outputs=OUTPUTS, initial=SHEAR, viscosity=0.1, **settings):
    return make_case(
        (7, 6),
        outputs,
        initial=initial,
        run={"steps": steps, **settings},
        fluid={"viscosity": viscosity},
    )


def run_case(case, directory, **options):
    return run(case, Serial(), directory, **options)


def summary(directory):
    return json.loads((directory / "summary.json").read_text())


def monitor(directory):
    """The rows of monitor.csv without the last column, the speed."""
    rows = (directory / "monitor.csv").read_text().splitlines()
    return [row.rpartition(",")[0] for row in rows]


def state(directory, step=30):
    with h5py.File(directory / f"checkpoint_{step:09d}.h5") as file:
        return file["fluid/f"][...]


def signal_at(monkeypatch, step, number=signal.SIGUSR1):
    original = Solver.step

    def with_signal(solver):
        original(solver)
        if solver.steps == step:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Solver, "step", with_signal)


STEADY = {"every": 20, "tolerance": 0.9}


def pushed(steps, push=1e-3):
    return make_case((7, 6), [], force={"name": "guo", "value": [push, 0]}, run={"steps": steps})

"""Sums over the box and over bodies at the present step, the same on all ranks."""

import numpy as np

from mpilbm.core.errors import UsageError
from mpilbm.outputs import Context
from mpilbm.outputs.core.totals import over_bodies
from mpilbm.physics import sloped


def flow_sums(context: Context) -> dict[str, float]:
    """Sums over the fluid cells by their names in `monitor.csv`; collective."""
    found = context.comm.bcast(context.totals.start(context.solver.steps)())
    names = sloped.columns(context.solver.sum_names)
    return {name: found[name] for name in names if name != "nonfinite"}


def body_forces(context: Context) -> dict[str, np.ndarray]:
    """The force (D,) on each body by its label; collective, UsageError if no body is weighed."""
    exchanged, case = context.solver.exchanged, context.case
    if exchanged is None:
        raise UsageError(
            'forces: the case weighs no body; add [[output]] with name = "body_forces"'
        )
    parts = context.comm.allgather((exchanged.groups[:, 1], exchanged.start()()))
    labels = [case.bodies[number].label for number in case.needs.weighed]
    return dict(zip(labels, over_bodies(case, parts)[:, : case.dimensions], strict=True))

"""What a run costs: memory, number of GPUs, and the time of its steps."""

from math import ceil, prod

import numpy as np

from mpilbm.case.checks import problems_with
from mpilbm.case.model import Case
from mpilbm.core.registry import make
from mpilbm.core.units import in_words
from mpilbm.layouts.auto import Auto
from mpilbm.run.preflight.expected_speed import Estimate, bandwidth
from mpilbm.run.preflight.report import Line
from mpilbm.run.preflight.slabs import COPY
from mpilbm.solids import plane_costs
from mpilbm.solver.memory_plan import bytes_needed

FULL = 0.9  # of the memory of a GPU: boundary lists and the driver need the rest
# GLUPS of one GPU in `moments` and float32 past the Ahmed body, 160 cells long: manual,
# performance, "Flows with walls, inlets and bodies". Other cases are estimated.
MEASURED = {("D3Q27", "recursive_regularized"): 20.0, ("D3Q19", "recursive_regularized"): 23.4}
MEASURED_ON = "an H100, past the Ahmed body with bounce_back; small boxes are slower"


def gpu_lines(case: Case, steps: int, gpu_memory: float) -> list[Line]:
    """Memory, number of GPUs of `gpu_memory` GB each, and the time of the steps on these."""
    case = _with_fast_layout(case)
    (slab,) = plane_costs.slabs(case, 1)
    need = sum(bytes_needed(case, slab).values())
    count = ceil(need / (FULL * gpu_memory * 1e9))
    lines = [
        Line("memory", in_words(need), "all arrays, without the lists of boundaries"),
        Line("GPUs", str(count), f"of {gpu_memory:g} GB"),
    ]
    glups, source = _speed(case)
    if glups is None:
        return [*lines, Line("steps", f"{steps:,}")]
    seconds = steps * prod(case.shape) / (glups * 1e9 * count)
    note = f"{steps:,} steps at {glups:.3g} GLUPS per GPU: {source}"
    return [*lines, Line("run time", duration(seconds), note)]


def rank_lines(case: Case, steps: int, ranks: int) -> list[Line]:
    """Memory of a rank, and the time of the steps on this machine."""
    if case.shape[0] < ranks:
        return []
    largest = max(plane_costs.slabs(case, ranks), key=lambda slab: slab.planes)
    memory = in_words(sum(bytes_needed(case, largest).values()))
    lines = [Line("memory", memory, "per rank, without the lists of boundaries")]
    formats = case.formats
    traffic = 2 * len(formats.names) * np.dtype(formats.widest).itemsize * prod(case.shape)
    copy = bandwidth(case.backend)
    if copy is None:
        return [*lines, Line("steps", f"{steps:,}")]
    seconds = steps * traffic / copy / ranks
    least = "about" if case.bodies else "at least"  # solid cells may need no traffic
    note = f"{steps:,} steps; {least}: memory traffic at {copy / 1e9:.3g} GB/s per rank"
    return [*lines, Line("run time", duration(seconds), note)]


def _with_fast_layout(case: Case) -> Case:
    """The case with the layout that is fastest on GPUs, unless it names one."""
    if not isinstance(case.layout, Auto):
        return case
    moments = make("layouts", "moments")
    allowed = not problems_with(case, layout=moments)
    return case.model_copy(update={"layout": moments if allowed else make("layouts", "ab")})


def _speed(case: Case) -> tuple[float | None, str]:
    """GLUPS of one GPU, and where the number is from."""
    known = MEASURED.get((case.lattice.name, case.fluids[0].collision.name))
    if known and case.layout.name == "moments":
        return known, MEASURED_ON
    links = int(any(not body.boundary.capabilities.in_cells for body in case.bodies))
    found = Estimate(COPY, prod(case.shape), links).glups(case)
    return found, "estimated for an H200; small boxes are slower"


def duration(seconds: float) -> str:
    """A time in s, min, h or days, with two digits."""
    for limit, scale, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{float(f'{seconds / scale:.2g}'):g} {name}"
    return f"{seconds / 86400:.3g} days"

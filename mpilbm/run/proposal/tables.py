"""The tables of the case that is proposed for a flow."""

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from mpilbm.case.starts import ramp_of
from mpilbm.core.registry import make
from mpilbm.run.preflight.inspection import DENSER
from mpilbm.run.proposal import scheme
from mpilbm.run.proposal.boxes import EXPONENT, PARABOLA, Box, box_of, metres, quantity
from mpilbm.run.proposal.flow import Flow

LENGTHS = 20  # of a body that the stream travels after the ramp and one passage of the box
PASSAGES = 3  # of a pipe or passage after the ramp
ROWS, COMPARED = 1000, 100  # of forces and flow rates, and comparisons of their means, in a run
KNOWN = 0.01  # relative error of the mean drag or pressure drop at which the run stops
RELAXATION = 0.01  # of `characteristic`; with 0.001 eddies above a road were unstable there

Tables = dict[str, Any]


@dataclass(frozen=True)
class Proposed:
    """The tables of a proposed case, and the numbers that its comments name.

    cell, step  of [units], in m and s
    steps       of the run
    """

    flow: Flow
    box: Box
    cell: float
    step: float
    steps: int
    tables: Tables


def proposed(flow: Flow, title: str) -> Proposed:
    """The case for a flow."""
    cs2 = float(make("lattices", scheme.LATTICE).cs2)
    cell = scheme.rounded_down(flow.length / flow.cells)
    box = box_of(flow, cell)
    step = scheme.longest_step(cell, box.fastest * flow.speed, flow.viscosity, cs2)
    u = flow.speed * step / cell
    ramp = ramp_of(max(box.size), cs2)
    travels = box.size[0] + LENGTHS * flow.length / cell
    if flow.kind == "internal":
        travels = PASSAGES * box.passage
    steps = ramp + ceil(travels / u)
    resolution = flow.resolution(cell)
    substance, viscosity = flow.substance
    units: Tables = {"cell": quantity(cell, "m"), "step": quantity(step, "s")}
    tables: Tables = {
        "title": title,
        "lattice": {"name": scheme.LATTICE},
        "units": units | substance,
        "domain": {"size": [metres(n, cell) for n in box.size]},
        "fluid": viscosity,
        "collision": scheme.collision(resolution),
        "layout": {} if box.shape is None else scheme.layout(resolution),
        "boundary": _faces(flow, box, cell, step, _seconds(ramp, step)),
        "sponge": [_sponge(flow, box, cell, u * box.fastest)],
    }
    if box.shape is not None:
        label = "body" if flow.kind == "external" else "wall"
        body = {"label": label, "shape": box.shape, "boundary": scheme.body_wall(resolution)}
        tables["body"] = [body]
    tables["run"] = {
        "steps": _seconds(steps, step),
        "steady": {
            "every": _seconds(max(1, steps // COMPARED), step),
            "tolerance": KNOWN,
            "of": "body_forces" if flow.kind == "external" else "flow_rate",
            "by": "error",
        },
    }
    tables["output"] = _outputs(flow, box, cell, _seconds(max(1, steps // ROWS), step))
    tables = {key: value for key, value in tables.items() if value}
    return Proposed(flow, box, cell, step, steps, tables)


def _seconds(steps: float, step: float) -> str:
    return quantity(steps * step, "s")


def _faces(flow: Flow, box: Box, cell: float, step: float, ramp: str) -> list[Tables]:
    """The boundaries of the faces."""
    inlet, outlet = flow.faces
    inwards = 1 if inlet[1] == "-" else -1
    stream: list[Any] = [0, 0, 0]
    axis = "xyz".index(inlet[0])
    stream[axis] = f"{inwards * box.fastest * flow.speed:.9g} m/s"
    entry: Tables = {"name": "equilibrium", "where": [inlet], "velocity": stream, "ramp": ramp}
    if flow.shape == "pipe":
        radius = flow.length / 2
        if box.fastest == PARABOLA:
            u, share = flow.speed * box.fastest * step / cell, radius / (box.size[1] * cell)
            squares = "(y/ny - 0.5)**2 + (z/nz - 0.5)**2"
            stream[axis] = f"{u:.9g}*max(0, 1 - ({squares})/{share**2:.9g})"
        else:
            profile: Tables = {"name": "power", "exponent": EXPONENT}
            profile["centre"] = [metres(n / 2, cell) for n in box.size[1:]]
            entry["profile"] = profile | {"reference": quantity(radius, "m")}
    sides = [face for a in "xyz" for face in (f"{a}-", f"{a}+") if face not in flow.faces]
    exit_: Tables = {"name": "copy", "where": [outlet], "rho": "0 Pa"}
    if flow.kind == "internal":
        wall = scheme.face_wall(flow.resolution(cell))
        return [entry, exit_, wall | {"where": sides}]
    exit_ |= {"name": "characteristic", "relaxation": RELAXATION}
    if flow.ground is None:
        return [entry, exit_, {"name": "free_slip", "where": sides}]
    road = scheme.MODEL | {"where": ["z-"], "velocity": stream, "ramp": ramp}
    return [entry, exit_, {"name": "free_slip", "where": sides[:2] + sides[3:]}, road]


def _sponge(flow: Flow, box: Box, cell: float, u: float) -> Tables:
    """The layer in front of the outlet; between walls with a small loss of pressure.

    The density in front of it rises by 2 nu U n / (3 r^2 cs2), r the hydraulic radius: see
    inspection.sponges_between_walls.
    """
    layer: Tables = {"where": [flow.faces[1]], "thickness": metres(box.sponge, cell)}
    if flow.kind == "external":
        return layer
    r = flow.length / cell / 4
    most = DENSER * 3 * r**2 / (3 * 2 * u * box.sponge)
    unit = 10.0 ** floor(log10(most))
    return layer | {"viscosity": min(1.0, float(f"{floor(most / unit) * unit:.1g}"))}


def _outputs(flow: Flow, box: Box, cell: float, every: str) -> list[Tables]:
    """The drag and lift of a body, or the pressure drop of a passage, and the flow at the end."""
    last = {"name": "snapshot", "fields": ["rho", "u", "pressure"]}
    if flow.kind == "external":
        velocity = [f"{flow.speed:.9g} m/s", 0, 0]
        forces = {"name": "body_forces", "every": every, "velocity": velocity, "lift": [0, 0, 1]}
        return [forces, last]
    bore = flow.length / cell
    planes = []
    for label, face, behind in zip(("in", "out"), flow.faces, (bore, box.sponge + 2), strict=True):
        n = box.size["xyz".index(face[0])]
        behind = min(behind, n / 3)
        place = behind if face[1] == "-" else n - behind
        planes.append({"label": label, "normal": face[0], "position": metres(place, cell)})
    rates = {"name": "flow_rate", "every": every, "between": ["in", "out"], "plane": planes}
    return [rates | {"label": "passage"}, last]

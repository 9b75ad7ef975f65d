"""The text of a proposed case: its tables with comments, and what to expect on top."""

import tomllib
from functools import partial
from math import ceil, prod
from pathlib import Path
from textwrap import wrap
from typing import Any

from mpilbm.case.case import parse_case
from mpilbm.case.compressibility import COMPRESSIBLE, too_fast
from mpilbm.case.model import Case
from mpilbm.core.errors import CaseError, CommandError
from mpilbm.core.printable import inline, one_line
from mpilbm.core.units import mach
from mpilbm.model.limits import stability
from mpilbm.run.preflight.inspection import is_usable
from mpilbm.run.preflight.report import Line
from mpilbm.run.proposal.accuracy import accuracy_line, wall_line
from mpilbm.run.proposal.costs import gpu_lines
from mpilbm.run.proposal.flow import flow_of
from mpilbm.run.proposal.options import Given
from mpilbm.run.proposal.scheme import MACH, Kind
from mpilbm.run.proposal.tables import Proposed, proposed
from mpilbm.solids.surfaces.findings import COARSE

WIDTH, COMMENT = 98, 40  # of a line, and the column of its comment
LONGEST = 60  # characters of the name of a file in the title


def text_of(kind: Kind, given: Given, path: Path) -> str:
    """The text of the case that is proposed for a flow; raises CommandError and CaseError."""
    flow = flow_of(kind, given, path.parent)
    name = one_line(Path(flow.shape).name, LONGEST)
    what = given.fluid or "A fluid"
    way = f"past {name}" if kind == "external" else f"through {name}"
    found = proposed(flow, f"{what.capitalize()} {way}, Re = {flow.reynolds:.3g}")
    text = _commented(found)
    try:
        case = parse_case(tomllib.loads(text), path)
    except CaseError as error:
        raise CommandError(
            f"new {path}: length {flow.length:.3g} m, speed {flow.speed:.3g} m/s, viscosity "
            f"{flow.viscosity:.3g} m^2/s and {flow.cells:,} cells give no valid case; change one "
            f"of them: {error.problems[0]}"
        ) from None
    return "\n".join([*_head(found, case, path), text])


def lines(found: Proposed, case: Case) -> list[Line]:
    """What is proposed, and what it costs and is worth."""
    flow, cells = found.flow, case.domain.size
    resolution = flow.resolution(found.cell)
    fastest = found.box.fastest * flow.speed * found.step / found.cell
    where = "along the body" if flow.kind == "external" else "across the bore"
    fluid = case.fluids[0]
    verdict, level = stability(case, fluid, fastest, partial(is_usable, case, fluid))
    box = " x ".join(map(str, cells))
    proposal = [
        Line("cells", f"{resolution.cells:.4g} {where}", f"{box} = {prod(cells):,} in all"),
        Line("Mach", f"{mach(fastest):.3g}", f"at most {MACH:g}, for the longest time step"),
        Line("stability", "", verdict, level),
    ]
    if flow.kind == "external":
        share = prod(flow.sides[1:]) / prod(n * found.cell for n in cells[1:])
        proposal.insert(1, Line("blockage", f"{share:.1%}", "of the bounding box"))
    costs = gpu_lines(case, found.steps, flow.gpu_memory)
    doubts = _doubts(found, case.sound)
    return [*proposal, *doubts, wall_line(resolution), accuracy_line(resolution), *costs]


def _doubts(found: Proposed, sound: float | None) -> list[Line]:
    """What spoils the result, whatever the cells along the body are."""
    flow, cell = found.flow, found.cell
    lines = []
    if sound and flow.speed > COMPRESSIBLE * sound:
        lines.append(Line("real Mach", "", too_fast(flow.speed, sound), "poor"))
    narrow = flow.resolution(cell).narrow
    if narrow < COARSE:
        least = ceil(COARSE * flow.slender)
        text = f"across the shortest side of the body; {COARSE} need --cells {least}"
        lines.append(Line("thickness", f"{narrow:.2g} cells", text, "poor"))
    if flow.ground is not None and flow.ground < COARSE / 2 * cell:
        text = f"between body and road; at least {COARSE // 2} resolve the flow there"
        lines.append(Line("gap", f"{flow.ground / cell:.2g} cells", text, "poor"))
    return lines


def _head(found: Proposed, case: Case, path: Path) -> list[str]:
    """The comment on top."""
    flow, name = found.flow, path.name
    length = f"{flow.length:.4g} m"
    head = [
        f"# {found.tables['title']}, with the length {length} and the speed {flow.speed:.4g} m/s.",
        "#",
        f"#     mpilbm check {name}; mpilbm run {name}; mpilbm report {path.stem}.out",
        "#",
    ]
    for line in lines(found, case):
        text = "; ".join(filter(None, (line.value, line.verdict)))
        first, *rest = wrap(text, WIDTH - 13)
        head += [f"# {line.what:<10} {first}", *(f"#            {each}" for each in rest)]
    return [*head, ""]


def _comments(found: Proposed) -> dict[str, str]:
    """The comments of keys, by their paths."""
    flow, resolution = found.flow, found.flow.resolution(found.cell)
    external = flow.kind == "external"
    u = found.box.fastest * flow.speed * found.step / found.cell
    stop = "drag" if external else "pressure drop"
    walls = {
        "resolved": "accurate walls of resolved flow",
        "modelled": "a wall law gives the stress that the cells do not resolve",
        "coarse": "stable on coarse cells",
    }[resolution.walls]
    comments = {
        "lattice.name": "27 directions: round pipes and jets stay round",
        "units.cell": "a smaller cell needs a step that is shorter in proportion",
        "units.step": f"{u:.3g} cells per step at the largest speed",
        "domain.size": " x ".join(map(str, found.box.size)) + " cells",
        "collision.omega_bulk": "damps sound",
        "collision.closure": "the cells do not resolve the turbulence at the walls",
        "layout.name": 'fast on GPUs; on CPUs "auto" is twice as fast',
        "boundary.0.ramp": "8 crossings of the box by sound: small pressure waves",
        "boundary.1.rho": "relative to the pressure at rest; backflow may enter",
        "sponge.0.viscosity": "more would raise the density in front of it",
        "body.0.boundary": walls,
        "run.steps": f"{found.steps:,} steps",
        "run.steady": f"stops when the error of the mean {stop} is 1 %",
    }
    if "*" in str(found.tables["boundary"][0]["velocity"]):
        comments["boundary.0.velocity"] = "a parabola, in cells per step: depends on cell and step"
    return comments


def _commented(found: Proposed) -> str:
    """The tables as TOML with comments."""
    comments, parts = _comments(found), []
    for name, value in found.tables.items():
        if not isinstance(value, dict | list):
            parts.append(_line(name, value, ""))
        for number, table in enumerate(value if isinstance(value, list) else []):
            parts.append(f"\n[[{name}]]")
            parts += [
                _line(k, v, comments.get(f"{name}.{number}.{k}", "")) for k, v in table.items()
            ]
        if isinstance(value, dict):
            parts.append(f"\n[{name}]")
            parts += [_line(k, v, comments.get(f"{name}.{k}", "")) for k, v in value.items()]
    return "\n".join(parts) + "\n"


def _line(key: str, value: Any, comment: str) -> str:
    """A key with its value; long lists over several lines, comments of long values above."""
    text = f"{key} = {inline(value)}"
    if len(text) > WIDTH and isinstance(value, list):
        inner = "".join(f"    {inline(each)},\n" for each in value)
        text = f"{key} = [\n{inner}]"
    if len(text) > COMMENT and comment:
        return f"# {comment}\n{text}"
    return f"{text:<{COMMENT}}# {comment}" if comment else text

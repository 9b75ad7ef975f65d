"""The report of `mpilbm check`: its lines, findings and problems, and their printing."""

from collections import Counter
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from mpilbm.case.driving import forced_channel
from mpilbm.case.model import Case, Fluid, Scalar
from mpilbm.core.printable import one_line
from mpilbm.core.units import (
    LENGTH,
    PRESSURE,
    TIME,
    VELOCITY,
    VISCOSITY,
    Units,
    counted,
    reynolds,
    tau_from_viscosity,
)
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.model.limits import Usable, of_fluid
from mpilbm.physics.boundaries.wall_model import WallModel
from mpilbm.physics.wall_laws import VISCOUS
from mpilbm.solids.surfaces.findings import y_plus

COLOURS = {"good": "green", "fair": "yellow", "poor": "red", "": ""}
SEVERITIES = {SERIOUS: "red", WARNING: "yellow", NOTE: ""}


@dataclass(frozen=True)
class Line:
    """A quantity, its value and a verdict; `level` is good, fair, poor or empty."""

    what: str
    value: str
    verdict: str = ""
    level: str = ""


@dataclass
class Report:
    """Lines by section, findings, and the `problems` that would stop the run."""

    title: str
    sections: dict[str, list[Line]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether the case would run."""
        return not self.problems

    @property
    def conclusion(self) -> str:
        """The last line: whether the case would run, and the numbers of findings."""
        if not self.runs:
            return "it would not run"
        if not self.findings:
            return "it would run"
        numbers = Counter(found.severity for found in self.findings)
        each = ", ".join(f"{numbers[name]} {name}" for name in SEVERITIES if numbers[name])
        return f"valid; {counted(len(self.findings), 'finding')} above: {each}"


def show(report: Report) -> None:
    """Print the report, in colours on a terminal; names in the case are not taken as markup."""
    from rich.console import Console
    from rich.table import Table

    width = None if Console().is_terminal else 200
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    console.print(one_line(report.title), style="bold")
    for title, lines in report.sections.items():
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for line in lines:
            cells = map(one_line, (f"  {line.what}", line.value, line.verdict))
            table.add_row(*cells, style=COLOURS[line.level])
        console.print(one_line(title), style="bold")
        console.print(table)
    for found in report.findings:
        console.print(one_line(found.line), style=SEVERITIES[found.severity])
    for text in report.problems:
        console.print(one_line(f"problem: {text}"), style="red")
    console.print(report.conclusion, style="bold")


GIVEN = "the largest given"  # of the speeds of a case


def fluid_lines(case: Case, fluid: Fluid, speed: float, source: str, usable: Usable) -> list[Line]:
    """Viscosity, rates, Mach and Reynolds numbers with verdicts; `source`: of what the speed is.

    `usable`: whether advice may name a collision on a lattice.
    """
    judged = {what: Line(what, *rest) for what, *rest in of_fluid(case, fluid, speed, usable)}
    lines = [Line("viscosity", f"{fluid.viscosity:.6g}", "cells^2 per step")]
    lines += [*rheology_lines(case, fluid, speed), judged["tau"]]
    for name, rate in fluid.collision.rates(fluid.viscosity, case.lattice).items():
        lines.append(Line(name, f"{float(rate):.6g}", fluid.collision.name))
    lines += wall_lines(case, speed)
    if not speed:
        return [*lines, Line("speed", "none is given", "Mach and Reynolds number unknown")]
    lines.append(Line("speed", f"{speed:.4g}", f"cells per step, {source}"))
    return [*lines, judged["Mach"], _reynolds_line(case, fluid, speed), judged["grid Reynolds"]]


def rheology_lines(case: Case, fluid: Fluid, speed: float) -> list[Line]:
    """The range of the viscosity of a non-Newtonian fluid, and its viscosity at U / L.

    tau and the grid Reynolds number are those of the least viscosity.
    """
    closure = fluid.collision.closure
    limits = closure.limits() if closure else None
    if closure is None or limits is None:
        return []
    low, high = limits
    note = f"{closure.name}; tau and grid Reynolds for the least, rates for the one above"
    lines = [Line("viscosity range", f"{low:.4g} to {high:.4g}", note)]
    if speed:
        length = fluid.length or min(case.domain.size)
        nu = closure.viscosity(
            case.lattice, {(0, 1): np.array(speed / length / 2)}, fluid.viscosity
        )
        note = f"with the viscosity {nu:.4g} at the shear rate U/L, L = {length:g}"
        lines.append(Line("generalised Re", f"{speed * length / nu:.4g}", note))
    return lines


def wall_lines(case: Case, speed: float) -> list[Line]:
    """u_tau, Re_tau and y+ of the first cell of a channel that a constant force drives.

    In other flows y+ at faces and bodies with a wall model, of a flat plate as long as the box.
    """
    walls = (*case.boundaries, *(body.boundary for body in case.bodies))
    models = [each for each in walls if isinstance(each, WallModel)]
    channel, what = forced_channel(case), "y+ of the first cell"
    if channel is not None:
        return [
            Line("u_tau", f"{channel.u_tau:.4g}", "cells per step, from the driving force"),
            Line("Re_tau", f"{channel.re_tau:.4g}", f"u_tau h / nu, h = {channel.h:g} cells"),
            Line(
                what, f"{channel.first_y_plus:.3g}", *resolved(channel.first_y_plus, bool(models))
            ),
        ]
    if not models or not speed:
        return []
    length = max(case.domain.size)
    value = y_plus(speed, length, case.fluids[0].viscosity)
    note, level = resolved(value, True)
    return [Line(what, f"about {value:.2g}", f"at a plate of {length} cells; {note}", level)]


def resolved(first: float, modelled: bool) -> tuple[str, str]:
    """A verdict on y+ of the first cell, and its level; `modelled`: with a wall model."""
    if first <= VISCOUS:
        return (f"up to {VISCOUS}: wall_model is not needed", "fair") if modelled else ("", "")
    if modelled:
        return f"above {VISCOUS}: wall_model gives the stress", "good"
    return f"above {VISCOUS}: the viscous sublayer is not resolved; use wall_model", "fair"


def _reynolds_line(case: Case, fluid: Fluid, speed: float) -> Line:
    """The Reynolds number of the case or, if none is given, of the shortest side of the box."""
    if fluid.length and fluid.velocity:
        number = reynolds(fluid.viscosity, fluid.length, fluid.velocity)
        note = f"length {fluid.length:g}, velocity {fluid.velocity:g}"
    else:
        number = reynolds(fluid.viscosity, min(case.domain.size), speed)
        note = "of the box: its shortest side, the speed above"
    return Line("Reynolds", f"{number:.6g}", note)


def unit_lines(case: Case, units: Units, speed: float, source: str = GIVEN) -> list[Line]:
    """The lattice units in SI, and the box, the run and the fluids in SI; see fluid_lines."""
    box = " x ".join(f"{units.to_si(n, LENGTH):.6g}" for n in case.domain.size)
    lines = [
        Line("cell", f"{units.cell:.6g} m", f"the box: {box} m"),
        Line("step", f"{units.step:.6g} s", f"the run: {units.to_si(case.run.steps, TIME):.6g} s"),
        Line("velocity 1", f"{units.unit(VELOCITY):.6g} m/s", "one cell per step"),
        Line("rho 1", f"{units.density:.6g} kg/m^3"),
        Line("pressure 1", f"{units.unit(PRESSURE):.6g} Pa", "p = cs2 (rho - 1)"),
    ]
    if speed:
        lines.append(Line("speed", f"{units.to_si(speed, VELOCITY):.6g} m/s", source))
    for fluid in case.fluids:
        nu = units.to_si(fluid.viscosity, VISCOSITY)
        lines.append(Line(f"viscosity {fluid.label}".strip(), f"{nu:.6g} m^2/s"))
    return lines


FAST = 0.3  # speed of free fall above which the flow is compressible


def scalar_lines(case: Case, scalar: Scalar) -> list[Line]:
    """Diffusivity, conditions on faces, and the Rayleigh number of a scalar that acts."""
    nu = case.fluids[0].viscosity
    tau = tau_from_viscosity(scalar.diffusivity, scalar.lattice.cs2)
    lines = [
        Line("diffusivity", f"{scalar.diffusivity:.6g}", "cells^2 per step"),
        Line("tau", f"{tau:.6g}", f"{scalar.lattice.name}, {scalar.collision.name}"),
        Line("Prandtl or Schmidt", f"{nu / scalar.diffusivity:.4g}", "viscosity / diffusivity"),
    ]
    for boundary in scalar.boundaries:
        given = ", ".join(f"{key} = {value}" for key, value in boundary.values().items())
        text = "adiabatic" if boundary.reflects else boundary.name
        lines.append(Line(f"boundary {' '.join(boundary.where)}", text, given))
    return lines + _buoyancy(case, scalar)


def _buoyancy(case: Case, scalar: Scalar) -> list[Line]:
    """The Rayleigh number and the speed of free fall; none unless faces have given numbers."""
    acting = case.buoyancy.expansions.get(scalar.label) if case.buoyancy else None
    held: dict[str, float] = {}
    for boundary in (each for each in scalar.boundaries if each.name == "value"):
        value: Any = boundary.values()["value"]
        held |= dict.fromkeys(boundary.where, value) if isinstance(value, int | float) else {}
    if case.buoyancy is None or acting is None or len(set(held.values())) < 2:
        return []
    difference = max(held.values()) - min(held.values())
    axes = {face[0] for face in held}
    axis = next(iter(axes)) if len(axes) == 1 else "xyz"[case.dimensions - 1]
    H = case.domain.size["xyz".index(axis)]
    push = sqrt(sum(g * g for g in case.buoyancy.gravity)) * abs(acting.beta) * difference
    rayleigh = push * H**3 / (case.fluids[0].viscosity * scalar.diffusivity)
    speed = sqrt(push * H)
    note = f"gravity beta d{scalar.label} H^3 / (nu D), H = {H} cells along {axis}"
    fast = "too fast for an incompressible flow; lower gravity" if speed > FAST else ""
    return [
        Line("Rayleigh", f"{rayleigh:.4g}", note),
        Line("free fall", f"{speed:.3g}", fast or "cells per step", "fair" if fast else ""),
    ]

"""The options of `mpilbm new` that describe a flow in SI."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from mpilbm.core.machine.command_line import PositiveNumber, option


@dataclass(frozen=True)
class Given:
    """What the options give, as texts and numbers; None or "" without the option."""

    body: str | None = None
    unit: str | None = None
    length: str | None = None
    bore: str | None = None
    speed: str | None = None
    fluid: str | None = None
    temperature: str | None = None
    viscosity: str | None = None
    density: str | None = None
    ground: str | None = None
    inlet: str | None = None
    outlet: str | None = None
    cells: int | None = None
    blockage: float | None = None
    gpu_memory: float | None = None

    @property
    def names(self) -> list[str]:
        """The options that are given, as they are written."""
        given = [each.name for each in fields(self) if getattr(self, each.name) is not None]
        return [f"--{name.replace('_', '-')}" for name in given]


OPTIONS = (
    option("--body=FILE|SHAPE", "Surface mesh, or sphere (external), pipe or duct (internal)."),
    option("--unit=UNIT", "Unit of the file of the body: m, cm, mm, um, in, ft."),
    option(
        "--length=LENGTH", "Longest side of the body, in place of --unit; length of a pipe or duct."
    ),
    option("--bore=LENGTH", "Internal: diameter of the passage at its inlet, such as '25 mm'."),
    option("--speed=SPEED", "Speed of the stream, or mean speed in the bore, such as '40 m/s'."),
    option("--fluid=FLUID", "Fluid: water or air."),
    option("--temperature=T", "Temperature of the fluid.  [default: 20 degC]"),
    option("--viscosity=NU", "Of another fluid, such as '1e-6 m^2/s'; requires --density."),
    option("--density=RHO", "Of another fluid, such as '998 kg/m^3'."),
    option("--ground=GAP", "External: a road this far below the body moves with the fluid."),
    option("--inlet=FACE", "Internal, of a mesh: face of the inlet.  [default: x-]"),
    option("--outlet=FACE", "Internal, of a mesh: face of the outlet.  [default: x+]"),
    option(
        "--cells=N", "Cells along the body or across the bore.", type=click.IntRange(4, 100_000)
    ),
    option(
        "--blockage=SHARE",
        "External: largest share of the cross-section that the body fills.  [default: 0.05]",
        type=PositiveNumber(max=0.5),
    ),
    option("--gpu-memory=GB", "Memory of each GPU.  [default: 80]", type=PositiveNumber()),
)


def flow_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command."""
    for each in reversed(OPTIONS):
        command = each(command)
    return command

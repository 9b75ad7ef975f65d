"""Names, units and values of the fields in pictures; in SI with [units]."""

from typing import TYPE_CHECKING

import numpy as np

from mpilbm.core.units import TIME, field_unit
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    from mpilbm.case.case import Case

UNITS = {"rho": "rho_0", "u": "cells/step", "vorticity": "1/step", "q_criterion": "1/step^2"}


def length_unit(case: "Case") -> tuple[float, str]:
    """The side of a cell and its unit."""
    return (case.units.cell, "m") if case.units else (1.0, "cells")


def time_of(case: "Case", step: int) -> str:
    """The time of a step in words."""
    return f"{case.units.to_si(step, TIME):.4g} s" if case.units else f"step {step}"


def label_of(case: "Case", name: str, normal: str = "") -> str:
    """The name and the unit of a field; of the vorticity the component `normal`, or its size."""
    unit = field_unit(case.units, name)[1] or UNITS.get("rho" if name.startswith("rho") else name)
    vorticity = f"vorticity_{normal}" if normal else "vorticity"
    shown = {"u": "|u|", "vorticity": vorticity}
    return f"{shown.get(name, name)} ({unit or '1'})"


def scalar(case: "Case", name: str, values: np.ndarray, normal: str = "") -> np.ndarray:
    """A field (z, y, x[, components]) as a scalar in the units of the picture.

    Of the vorticity the component `normal`, of other vectors the size.
    """
    if values.ndim == 4 and name == "vorticity" and normal:
        values = values[..., AXES.index(normal)]
    elif values.ndim == 4:
        values = np.linalg.norm(values.astype(float), axis=-1)
    return values * field_unit(case.units, name)[0]

"""Coefficients of drag, lift and side force, in columns whose names contain the direction."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpilbm.physics.lattices import AXES
from mpilbm.storage.csv_log import COEFFICIENTS

Floats = NDArray[np.float64]
PARALLEL = 1e-9  # largest part of `lift` across a parallel flow, from rounding


def directions(velocity: Sequence[float], lift: Sequence[float] | None = None) -> Floats:
    """Unit vectors of drag e, lift l and, in 3D, side force s = l x e, (D, D).

    e is the direction of the flow, and l that of `lift` across the flow, without it the default:
    z, or y for a flow along z; in 2D the other axis. (e, s, l) are right-handed. l and s are nan if
    `lift` is parallel to the flow.
    """
    D = len(velocity)
    e = np.array(velocity, float) / np.sqrt(np.square(velocity).sum())
    along = int(np.abs(e).argmax())
    upwards = D - 1 if along < D - 1 else D - 2
    towards = np.array(lift, float) if lift else np.eye(D)[upwards]
    across = towards - (towards @ e) * e
    size = np.sqrt(across @ across)
    with np.errstate(invalid="ignore", divide="ignore"):
        across = across / (size if size > PARALLEL * np.abs(towards).max() else 0)
    found = [e, across]
    return np.stack([*found, np.cross(across, e)] if D == 3 else found)


def columns(velocity: Sequence[float], lift: Sequence[float] | None = None) -> list[str]:
    """The names of the columns: c_d, c_l and, in 3D, c_s, each with its direction: "c_l +z"."""
    found = directions(velocity, lift)
    return [f"{name} {shown(v)}" for name, v in zip(COEFFICIENTS, found, strict=False)]


def shown(direction: Floats) -> str:
    """A direction in the name of a column: +x, -z, or +0.6x+0.8y."""
    parts = [(axis, v) for axis, v in zip(AXES, direction, strict=False) if abs(v) > PARALLEL]
    if len(parts) == 1:
        ((axis, v),) = parts
        return f"{'+' if v > 0 else '-'}{axis}"
    return "".join(f"{v:+.3g}{axis}" for axis, v in parts)

"""Compares the bounding box of a surface with the box of the case."""

from collections.abc import Sequence
from math import floor
from typing import Any, NamedTuple

from mpilbm.model.findings import NOTE, WARNING, Finding
from mpilbm.solids.periodic_images import LONGEST

MOST = 2  # boxes; a body that is longer along all axes is refused

METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}


class Given(NamedTuple):
    """The size in the case; one of the three is set."""

    scale: float | None
    length: float | None
    unit: str | None


def too_large(sides: Sequence[float], box: Sequence[int], given: Given) -> str:
    """Why a body with these sides is too large for a box, with a size that would fit; "" if not."""
    if not all(side > MOST * n for side, n in zip(sides, box, strict=True)):
        return ""
    return (
        f"has sides of {by(sides)} cells in a box of {by(box)}; allowed: a body at most twice as "
        f"long as the box along one axis or more; {_smaller(sides, box, given)}"
    )


def _smaller(sides: Sequence[float], box: Sequence[int], given: Given) -> str:
    """The size that would fit: with the largest unit, if this explains the size."""
    most = min(n / side for side, n in zip(sides, box, strict=True))
    if given.length:
        return f"length = {given.length * most:.3g} would fit"
    factors = {name: metres / METRES[given.unit or "m"] for name, metres in METRES.items()}
    name = max((k for k, f in factors.items() if f <= most), key=lambda k: factors[k], default="")
    if not name:
        return "check the size of the body in the file"
    cells = f"{by([side * factors[name] for side in sides])} cells"
    if given.scale is None:
        return f"unit = '{name}' would give {cells}"
    scale = given.scale * factors[name]
    return f"scale = {scale:.6g}, for a file in {name} read as one in m, would give {cells}"


def outside(
    where: str, lower: Sequence[float], upper: Sequence[float], domain: Any, sheet: bool
) -> list[Finding]:
    """Findings about a body much longer than the box, or outside of it along a periodic axis."""
    found = []
    sides = [b - a for a, b in zip(lower, upper, strict=True)]
    ratios = [side / n for side, n in zip(sides, domain.size, strict=True)]
    long = [axis for axis, ratio in zip("xyz", ratios, strict=False) if ratio > MOST]
    fits = min(ratios) <= 1
    if long and not (fits and sheet):
        found.append(Finding(
            NOTE if fits else WARNING, where,
            f"its sides of {by(sides)} cells are more than twice as long as the box along "
            f"{', '.join(long)}; only the part in the box counts; compare the unit of the file "
            "with scale, length or unit",
        ))  # fmt: skip
    for axis, a, b, n, periodic in zip(
        "xyz", lower, upper, domain.size, domain.periodic, strict=False
    ):
        if periodic and (b <= 0 or a >= n) and b - a <= LONGEST * n:
            moved = n * floor((a + b) / 2 / n)
            found.append(Finding(
                WARNING, where,
                f"lies outside the box, from {axis} = {a:.4g} to {b:.4g}; the box of {n} cells is "
                f"periodic, so that the body appears from {axis} = {a - moved:.4g} to "
                f"{b - moved:.4g}; change `at` to place it there",
            ))  # fmt: skip
    return found


def by(sides: Sequence[float]) -> str:
    """Text for the lengths of sides."""
    return " x ".join(f"{n:.4g}" for n in sides)

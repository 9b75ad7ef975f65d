"""Which variant to choose, and why."""

from collections.abc import Sequence
from typing import Any

from mpilbm.view.comparison.variants import COLLISION, LAYOUT

ALIKE = 0.95  # share of the highest speed from which on the smaller memory decides
GROWTH = 1.5  # of the largest deviation over the second half of the steps; above, a warning

Row = dict[str, Any]


def largest(row: Row, when: str = "end") -> tuple[float, str]:
    """The largest deviation of a row, and the name of the quantity; (0, "") if there is none."""
    found = [(value, name) for name, value in row[when].items() if value is not None]
    return max(found, default=(0.0, ""))


def name(row: Row) -> str:
    """The part in which the variants of this kind differ."""
    if row["kind"] in (LAYOUT, COLLISION):
        return row[row["kind"]]
    return f"{row['compute']}/{row['storage']}"


def recommend(kind: str, rows: Sequence[Row], tolerance: float, part: float) -> list[str]:
    """Sentences; `part`: the steps that were run as a share of those of the case."""
    measured = [row for row in rows if "problem" not in row]
    if not measured:
        return [f"{kind}: nothing could be measured"]
    fastest = max(row["glups"] for row in measured)
    if kind == COLLISION:
        names = ", ".join(name(row) for row in measured if row["glups"] >= ALIKE * fastest)
        return [
            "collision: no recommendation. The deviations are differences between models, not "
            "rounding errors: compare each model with a reference solution or on a finer grid. "
            f"Highest speed: {names}."
        ]
    accurate = [row for row in measured if largest(row)[0] <= tolerance]
    if not accurate:
        best = min(measured, key=lambda row: largest(row)[0])
        return [
            f"{kind}: no variant deviates from float64 by less than the tolerance {tolerance:g}; "
            f"the smallest deviation has {name(best)} ({_deviation(best)})."
        ]
    top = max(row["glups"] for row in accurate)
    alike = [row for row in accurate if row["glups"] >= ALIKE * top]
    best = min(alike, key=lambda row: (row["bytes"], largest(row)[0]))
    reason = _reason(best, accurate, measured, tolerance)
    return [f"{kind}: use {name(best)}. {reason}", *_growth(best, tolerance, part)]


def _reason(best: Row, accurate: Sequence[Row], measured: Sequence[Row], tolerance: float) -> str:
    """Why this row: compared with the case itself, and with faster ones that are less accurate."""
    text = f"It deviates from float64 by at most {_deviation(best)}; the tolerance is {tolerance:g}"
    own = next((row for row in measured if row["own"]), None)
    if own is best:
        text += ". No variant within the tolerance is clearly faster"
    elif own:
        speed, memory = (best[key] / own[key] for key in ("glups", "bytes"))
        text += f". Compared with {name(own)} of the case: {speed:.2f} times the speed"
        text += f", {memory:.2f} times the memory"
    faster = [row for row in measured if row not in accurate and row["glups"] > best["glups"]]
    for row in faster:
        text += f". {name(row)} is faster, but deviates by {_deviation(row)}"
    return text + "."


def _growth(row: Row, tolerance: float, part: float) -> list[str]:
    """A warning if the deviation grows, since the whole case is longer."""
    (half, _), (end, _) = largest(row, "half"), largest(row)
    if part >= 1 or not half or end / half < GROWTH:
        return []
    return [
        f"note: the largest deviation grew by a factor of {end / half:.2g} over the second half of "
        f"the steps, and these are {100 * part:.2g} % of the case; repeat with more --steps if "
        f"it may exceed the tolerance {tolerance:g} later."
    ]


def _deviation(row: Row) -> str:
    value, quantity = largest(row)
    return f"{value:.2g} ({quantity})" if quantity else "0"

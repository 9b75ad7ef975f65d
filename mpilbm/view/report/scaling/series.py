"""The measurements of `mpilbm bench --weak` and `--strong`, read from a folder and grouped."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from os.path import isdir
from pathlib import Path
from typing import Any

from mpilbm.core.errors import CommandError
from mpilbm.core.files.input_text import NotATextFile, read_text
from mpilbm.view.bench.boxes import EARLIER_PRECISIONS
from mpilbm.view.bench.variants import size_text
from mpilbm.view.report.scaling.model import Network, Prediction, prediction

NAMES = ("lattice", "collision", "layout", "precision", "setting")
MOST = 8  # series in a figure

Row = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """Runs that differ only in the number of ranks, in ascending order.

    `parts` are the names of the box: lattice, …, size, device; `halo` is None for a single rank.
    """

    kind: str
    parts: tuple[str, ...]
    halo: str | None
    rows: list[Row]
    model: Prediction | None

    @property
    def name(self) -> str:
        """All parts of the name."""
        return ", ".join(filter(None, (*self.parts, self.halo and f"halo {self.halo}")))

    @property
    def last(self) -> Row:
        """The row with most ranks."""
        return self.rows[-1]

    @property
    def alone(self) -> float | None:
        """GLUPS of one rank alone, the slowest, in the row with most ranks."""
        found = self.last.get(self.last["against"] or "", {}).get("glups")
        return min(found) if found else None


def read(directory: Path) -> list[Row]:
    """The rows of all files of the folder that contain a scaling, with the facts of the run."""
    if not isdir(directory):
        raise CommandError(
            f"{directory}: no such folder; name a folder with JSON files of mpilbm bench"
        )
    rows = []
    for path in sorted(directory.glob("*.json")):
        try:
            known = json.loads(read_text(path))
        except (NotATextFile, OSError, ValueError, RecursionError) as error:
            raise CommandError(f"{path}: cannot be read as JSON ({error}); remove it") from error
        if isinstance(known, dict) and "scaling" in known:
            measured = known.pop("rows", [])
            rows += [
                known | _with_present_name(row) | {"file": path.name}
                for row in measured
                if "problem" not in row
            ]
    if not rows:
        raise CommandError(
            f"{directory}: holds no measured *.json of mpilbm bench --weak or --strong; make one: "
            "mpirun -n 2 mpilbm bench --weak 256"
        )
    return rows


def _with_present_name(row: Row) -> Row:
    """The row with the present name of its precision, if an earlier version wrote it."""
    present = EARLIER_PRECISIONS.get(str(row.get("precision")))
    return row | {"precision": present} if present else row


def series(rows: list[Row], beyond: Network | None = None) -> list[Series]:
    """Rows grouped by box, device and halo; rows of one rank belong to all halos."""
    every = []
    for (kind, *parts), found in groupby(sorted(rows, key=_key), _key):
        group = sorted(found, key=lambda row: (row["ranks"], row["time"]))
        halos = {row["halo"]["name"]: None for row in group if row["ranks"] > 1}
        for halo in halos or [None]:
            mine = [row for row in group if row["ranks"] == 1 or row["halo"]["name"] == halo]
            every.append(Series(kind, tuple(parts), halo, mine, prediction(kind, mine, beyond)))
    return every


def _key(row: Row) -> tuple[str, ...]:
    weak = row["scaling"] == "weak"
    size = [*row["size"][:-1], row["size"][-1] // row["ranks"]] if weak else row["size"]
    box = f"{size_text(size)} {'per rank' if weak else 'in all'}"
    device = row["device"].partition(" on ")[0]
    return row["scaling"], *(str(row[key]) for key in NAMES), box, device


def step_seconds(row: Row) -> float:
    """Seconds of a step, the median of the repeats."""
    return row["fluid_cells"] / row["glups"] / 1e9


def fastest(found: Sequence[Series]) -> list[Series]:
    """Of each box the series with most ranks, then the highest speed, whatever its halo."""
    boxes: dict[tuple[str, ...], list[Series]] = {}
    for each in found:
        boxes.setdefault((each.kind, *each.parts), []).append(each)
    return [max(group, key=lambda one: (one.last["ranks"], one.last["glups"]))
            for group in boxes.values()]  # fmt: skip


def chosen(found: Sequence[Series]) -> list[Series]:
    """At most MOST of the series, those with most ranks and most measurements, in their order."""
    order = sorted(found, key=lambda one: (-one.last["ranks"], -len(one.rows)))[:MOST]
    return [each for each in found if any(each is one for one in order)]


def labels(found: Sequence[Series], halo: bool = True) -> list[str]:
    """Short names of some series: the parts in which they differ."""
    parts = [(*each.parts, each.halo or "one rank") if halo else each.parts for each in found]
    differ = [len(set(column)) > 1 for column in zip(*parts, strict=True)]
    names = [[part for part, keep in zip(own, differ, strict=True) if keep] for own in parts]
    texts = (" ".join(own) or "measured" for own in names)
    return [text.replace("$", r"\$") for text in texts]  # no formulas of Matplotlib


def common(found: Sequence[Series]) -> str:
    """The parts that all these series share."""
    columns = zip(*(each.parts for each in found), strict=True)
    return ", ".join(column[0] for column in columns if len(set(column)) == 1)

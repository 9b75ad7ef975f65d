"""Measurements of `mpilbm bench --weak` and `--strong`: read, grouped, and the model of a step.

The model (run/preflight/slabs.py) has the numbers of a measured row. It holds for the link
that was measured: on one node up to the measured number of ranks, on several nodes for any number.
With a network given by the user, it holds beyond one node as well: a node sends one face from its
first and one from its last rank, together `face_bytes`, through its network, and an exchange takes
as long as the slower one of network and link.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os.path import isdir
from pathlib import Path
from typing import Any, NamedTuple

from mpilbm.core.errors import CommandError
from mpilbm.core.files import NotATextFile, read_text
from mpilbm.core.registry import find
from mpilbm.run.preflight.slabs import Model
from mpilbm.view.bench import EARLIER_PRECISIONS
from mpilbm.view.bench.variants import size_text

NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*"
BANDWIDTH = re.compile(NUMBER + r"([kMGT]?)(B|bit)/s")
LATENCY = re.compile(NUMBER + r"([nuµm]?)s")
FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
FACTORS |= {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3}
LEAST = 0.9  # measured time of a step / time of the model; below it, its numbers are too long


class Network(NamedTuple):
    """Bytes per second that a node sends, and seconds until the first one arrives."""

    bandwidth: float
    latency: float


def network(text: str | None) -> Network | None:
    """The network of a text such as "50GB/s,2us"; CommandError for another form."""
    if text is None:
        return None
    first, _, second = text.partition(",")
    bandwidth, latency = BANDWIDTH.fullmatch(first.strip()), LATENCY.fullmatch(second.strip())
    if not bandwidth or not latency or not float(bandwidth[1]):
        raise CommandError(
            f"--network: found '{text}'; write the bandwidth of a node and the latency, for "
            "example 50GB/s,2us or 400Gbit/s,1.5us"
        )
    per_byte = 8 if bandwidth[3] == "bit" else 1
    rate, delay = (float(each[1]) * FACTORS[each[2]] for each in (bandwidth, latency))
    return Network(rate / per_byte, delay)


@dataclass(frozen=True)
class Prediction:
    """A model, from a row of `measured` ranks on `nodes` nodes."""

    model: Model
    measured: int
    nodes: int
    network: Network | None = None

    @property
    def ranks(self) -> list[int]:
        """The powers of two for which the model holds, at most 1024."""
        everywhere = self.nodes > 1 or self.network is not None
        return [n for n in self.model.ranks if everywhere or n <= self.measured]

    def at(self, ranks: int) -> Model:
        """The model on so many ranks; those of one node use its link."""
        if self.nodes > 1 or self.network is None or ranks <= self.measured:
            return self.model
        through = replace(self.model, **self.network._asdict())
        return max(self.model, through, key=Model.exchange)

    def seconds(self, ranks: int) -> float:
        """Seconds of a step."""
        return self.at(ranks).seconds(ranks)


def prediction(
    kind: str, rows: list[dict[str, Any]], beyond: Network | None = None
) -> Prediction | None:
    """The model from the row with most ranks; None if no row has a link and an overhead.

    The model is a lower limit. If the measured step is clearly shorter, the latency or the overhead
    was measured too long, and the model is None as well.
    """
    rows = [row for row in rows if row.get("link") and row.get("overhead") is not None]
    if not rows:
        return None
    row = max(rows, key=lambda one: (one["ranks"], one["time"]))
    found = Prediction(_model(kind, row), row["ranks"], row["nodes"], beyond)
    seconds = row["fluid_cells"] / row["glups"] / 1e9
    return found if seconds > LEAST * found.seconds(row["ranks"]) else None


def _model(kind: str, row: dict[str, Any]) -> Model:
    weak, planes = kind == "weak", row["size"][-1]
    listed = find("layouts", row["layout"]).listed
    periodic = tomllib.loads(row["case"])["domain"].get("periodic", [False])
    one_sided = row["ranks"] == 2 and not periodic[-1]  # no rank has two neighbours
    return Model(
        weak=weak,
        planes=planes // row["ranks"] if weak else planes,
        plane_cells=row["fluid_cells" if listed else "cells"] / planes,
        plane_fluid=row["fluid_cells"] / planes,
        bytes_per_update=row["bytes_per_update"],
        copy=row["copy_bandwidth"] / row["ranks"],
        overhead=row["overhead"],
        face_bytes=max(row["halo"]["bytes"]) * (2 if one_sided else 1),
        latency=row["link"]["latency"],
        bandwidth=row["link"]["bandwidth"],
    )


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
            for row in known.pop("rows", []):
                if "problem" not in row:
                    if present := EARLIER_PRECISIONS.get(str(row.get("precision"))):
                        row["precision"] = present
                    rows.append(known | row | {"file": path.name})
    if not rows:
        raise CommandError(
            f"{directory}: holds no measured *.json of mpilbm bench --weak or --strong; make one: "
            "mpirun -n 2 mpilbm bench --weak 256"
        )
    return rows


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


def by_box(found: Iterable[Series]) -> list[list[Series]]:
    """The series of each box, which differ in their halo."""
    boxes: dict[tuple[str, ...], list[Series]] = {}
    for each in found:
        boxes.setdefault((each.kind, *each.parts), []).append(each)
    return list(boxes.values())


def fastest(found: Sequence[Series]) -> list[Series]:
    """Of each box the series with most ranks, then the highest speed, whatever its halo."""
    groups = by_box(found)
    return [max(each, key=lambda one: (one.last["ranks"], one.last["glups"])) for each in groups]


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

"""The model of the time of a step (run/preflight/slabs.py) with the numbers of a measured row.

It holds for the link that was measured: on one node up to the measured number of ranks, on several
nodes for any number. With a network given by the user, it holds beyond one node as well: a node
sends one face from its first and one from its last rank, together `face_bytes`, through its
network, and an exchange takes as long as the slower one of network and link.
"""

import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mpilbm.core.errors import CommandError
from mpilbm.core.registry import find
from mpilbm.run.preflight.slabs import Model

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
    bits = 8 if bandwidth[3] == "bit" else 1
    return Network(
        float(bandwidth[1]) * FACTORS[bandwidth[2]] / bits, float(latency[1]) * FACTORS[latency[2]]
    )


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
        through = replace(
            self.model, latency=self.network.latency, bandwidth=self.network.bandwidth
        )
        return max(self.model, through, key=Model.exchange)

    def seconds(self, ranks: int) -> float:
        """Seconds of a step."""
        return self.at(ranks).seconds(ranks)

    def glups(self, ranks: int) -> float:
        """10^9 updates of fluid cells per second, of all ranks."""
        return self.at(ranks).glups(ranks)

    def efficiency(self, ranks: int) -> float:
        """GLUPS per rank of N ranks, relative to one rank."""
        return self.at(ranks).efficiency(ranks)


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
    return Model(
        weak=weak,
        planes=planes // row["ranks"] if weak else planes,
        plane_cells=row["fluid_cells" if listed else "cells"] / planes,
        plane_fluid=row["fluid_cells"] / planes,
        bytes_per_update=row["bytes_per_update"],
        copy=row["copy_bandwidth"] / row["ranks"],
        overhead=row["overhead"],
        face_bytes=max(row["halo"]["bytes"]) * (2 if _one_sided(row) else 1),
        latency=row["link"]["latency"],
        bandwidth=row["link"]["bandwidth"],
    )


def _one_sided(row: dict[str, Any]) -> bool:
    """Whether no rank has two neighbours: two ranks between walls."""
    periodic = tomllib.loads(row["case"])["domain"].get("periodic", [False])
    return row["ranks"] == 2 and not periodic[-1]

"""What a step on N ranks should take: memory traffic, launches and the link, nothing fitted to it.

A rank with P planes, on each of which the kernels update C cells (where a layout stores all, solid
ones too; entries of lists are left out), sends `face_bytes` to its neighbours in a step:

    traffic(p) = p C bytes_per_update / copy
    exchange = latency + face_bytes / link
    T(1) = max(overhead, traffic(P))
    T(N) = max(overhead, traffic(2)) + max(traffic(P - 2), overhead + exchange)

in seconds: `copy`, bytes that a device copy reads and writes a second on each rank; `overhead`,
the host's work in a step, that of a tiny box; `latency` and `link`, those of an exchange with both
neighbours (see link.measure). Edge planes go first; the host launches and sends one after the
other, while the device computes the other planes.
"""

import tomllib
from dataclasses import dataclass
from math import ceil

from mpilbm.registry import find

RANKS = tuple(2**k for k in range(11))  # to 1024
EDGES = 2  # planes next to neighbours


@dataclass(frozen=True)
class Model:
    """The numbers above; `planes` of a rank in weak scaling, in all in strong scaling.

    Of the `plane_cells` that are updated on a plane, `plane_fluid` count in GLUPS.
    """

    weak: bool
    planes: int
    plane_cells: float
    plane_fluid: float
    bytes_per_update: int
    copy: float
    overhead: float
    face_bytes: float
    latency: float
    bandwidth: float

    def exchange(self) -> float:
        """Seconds of an exchange."""
        return self.latency + self.face_bytes / self.bandwidth

    def seconds(self, ranks: int) -> float:
        """T(N) of the rank with the most planes."""
        planes = self.planes if self.weak else ceil(self.planes / ranks)
        plane = self.plane_cells * self.bytes_per_update / self.copy
        if ranks == 1:
            return max(self.overhead, planes * plane)
        edges = min(EDGES, planes)
        bulk = (planes - edges) * plane
        return max(self.overhead, edges * plane) + max(bulk, self.overhead + self.exchange())

    def glups(self, ranks: int) -> float:
        """10^9 updates a second of all ranks."""
        planes = self.planes * ranks if self.weak else self.planes
        return planes * self.plane_fluid / self.seconds(ranks) / 1e9

    def efficiency(self, ranks: int) -> float:
        """Of N ranks against one."""
        return self.glups(ranks) / ranks / self.glups(1)

    @property
    def ranks(self) -> list[int]:
        """1 to 1024, as far as there is a plane for each."""
        return [n for n in RANKS if self.weak or n <= self.planes]


def model(kind: str, rows: list[dict]) -> Model | None:
    """From the row of the most ranks; None where no row has a link and an overhead."""
    rows = [row for row in rows if row.get("link") and row.get("overhead") is not None]
    if not rows:
        return None
    row = max(rows, key=lambda one: (one["ranks"], one["time"]))
    weak, planes = kind == "weak", row["size"][-1]
    return Model(
        weak,
        planes // row["ranks"] if weak else planes,
        row["fluid_cells" if find("layouts", row["layout"]).listed else "cells"] / planes,
        row["fluid_cells"] / planes,
        row["bytes_per_update"],
        row["copy_bandwidth"] / row["ranks"],
        row["overhead"],
        max(row["halo"]["bytes"]) * (2 if _one_sided(row) else 1),
        row["link"]["latency"],
        row["link"]["bandwidth"],
    )


def _one_sided(row: dict) -> bool:
    """Whether no rank has two neighbours: two of them between walls."""
    periodic = tomllib.loads(row["case"])["domain"].get("periodic", [False])
    return row["ranks"] == 2 and not periodic[-1]

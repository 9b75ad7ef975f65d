"""A model of the time of a step on N ranks from memory traffic, launches and the link.

No number is fitted to the scaling. A rank with P planes, on each of which the kernels update C
cells (solid cells, too, in layouts that store them; boundary lists are neglected), sends
`face_bytes` to its neighbours in a step:

    traffic(p) = p C bytes_per_update / copy
    exchange = latency + face_bytes / link
    T(1) = max(overhead, traffic(P))
    T(N) = max(overhead, traffic(2)) + max(traffic(P - 2), overhead + exchange)

in seconds. `copy`: bytes that a device copy reads and writes per second on each rank; `overhead`:
the host's work in a step, measured with a tiny box; `latency` and `link` (bytes per second): of an
exchange with both neighbours (see exchange_time.link). Edge planes are computed first; then the
host launches the other planes and sends, while the device computes.
"""

from dataclasses import dataclass
from math import ceil

RANKS = tuple(2**k for k in range(11))  # to 1024
EDGES = 2  # planes next to neighbours


@dataclass(frozen=True, kw_only=True)
class Model:
    """The numbers above; `planes`: of a rank in weak scaling, of the box in strong scaling.

    `plane_cells` are updated on a plane, of which `plane_fluid` are fluid and count in GLUPS.
    `bandwidth` is `link`.
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
        """10^9 updates of fluid cells per second, of all ranks."""
        planes = self.planes * ranks if self.weak else self.planes
        return planes * self.plane_fluid / self.seconds(ranks) / 1e9

    def efficiency(self, ranks: int) -> float:
        """GLUPS per rank of N ranks, relative to one rank."""
        return self.glups(ranks) / ranks / self.glups(1)

    @property
    def ranks(self) -> list[int]:
        """1 to 1024, while each rank has a plane."""
        return [n for n in RANKS if self.weak or n <= self.planes]

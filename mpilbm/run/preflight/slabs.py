"""Whether slabs are thick enough for threads, and to hide the exchange with their neighbours.

The time of a step on N ranks follows from memory traffic, launches and the link; no number is
fitted to the scaling. A rank with P planes, on each of which the kernels update C cells (solid
cells, too, in layouts that store them; boundary lists are neglected), sends `face_bytes` to its
neighbours in a step:

    traffic(p) = p C bytes_per_update / copy
    exchange = latency + face_bytes / link
    T(1) = max(overhead, traffic(P))
    T(N) = max(overhead, traffic(2)) + max(traffic(P - 2), overhead + exchange)

in seconds. `copy`: bytes that a device copy reads and writes per second on each rank; `overhead`:
the host's work in a step, measured with a tiny box; `latency` and `link` (bytes per second): of an
exchange with both neighbours (see exchange_time.link). Edge planes are computed first; then the
host launches the other planes and sends, while the device computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from mpilbm.case.model import Case
from mpilbm.core.units import counted
from mpilbm.model.findings import WARNING, Finding
from mpilbm.parallel.slabs import Slab

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


# An NVIDIA H200: the bandwidth of its copy, the work of the host in a step, and the latency of an
# exchange (tools/measured/scaling/h200_4gpus_strong_cuda_ipc.json, 192^3).
COPY, OVERHEAD, LATENCY = 4.2e12, 7e-6, 20e-6


@dataclass(frozen=True)
class Link:
    """The connection of a GPU to others: bytes per second that it sends, through how many faces."""

    name: str
    bandwidth: float
    faces: int


# Measured in the same file: both faces. Ranks are numbered by node, so that a GPU of a node with
# several GPUs sends one face at most through the network; its bandwidth is the nominal one.
NVLINK, NETWORK = Link("NVLink", 360e9, 2), Link("400 Gb/s per GPU", 50e9, 1)
# The backend opencl sends through host memory: `staged`, mpirun -n 4 mpilbm info --probe.
HOST = Link("through host memory", 4e9, 2)
NODE = 8  # GPUs that NVLink joins


def least_planes(plane_cells: int, update_bytes: int, face_bytes: float, link: Link) -> int:
    """The planes of the thinnest slab whose exchange is hidden, by the model of this module.

    update_bytes  bytes that the update of a cell reads and writes
    face_bytes    bytes that a slab sends in a step through one face
    """
    exchange = OVERHEAD + LATENCY + link.faces * face_bytes / link.bandwidth
    return EDGES + ceil(exchange * COPY / (plane_cells * update_bytes))


def thin_slabs(
    case: Case, slabs: Sequence[Slab], sent: int, gpu_memory: float | None
) -> list[Finding]:
    """A finding if GPUs wait for the planes of their neighbours; `sent`: see halo_bytes."""
    ranks, shape = len(slabs), slabs[0].shape
    if ranks == 1 or not _on_gpus(case, gpu_memory):
        return []
    middle = slabs[ranks // 2]
    faces = sum(peer is not None for peer in (middle.lower, middle.upper))
    per_plane = shape[1] * shape[2], update_bytes(case), sent / faces
    elsewhere = case.backend.name == "auto" and gpu_memory is not None
    by_host = not elsewhere and case.backend.device_kind() == "opencl"
    inner, outer = (HOST, HOST) if by_host else (NVLINK, NETWORK)
    on_node, by_network = (least_planes(*per_plane, link) for link in (inner, outer))
    link, least = (inner, on_node) if ranks <= NODE else (outer, by_network)
    planes = max(slab.planes for slab in slabs)
    if planes >= least:
        return []
    most = max(1, shape[0] // by_network, min(NODE, shape[0] // on_node))
    text = (
        f"slabs of {counted(planes, 'plane')} are thin: on GPUs, the exchange with the neighbours "
        f"takes longer than the update of a slab of fewer than {counted(least, 'plane')} (model "
        f"of an H200, {link.name}); use at most {counted(most, 'GPU')}, or "
        "turn the box so that its longest side is the last"
    )
    return [Finding(WARNING, "ranks", text)]


def update_bytes(case: Case) -> int:
    """Bytes of stored values that the update of a cell reads and writes; fields are neglected.

    A value that several cells read counts once.
    """
    layout, formats = case.layout, case.formats
    sides = layout.reads(case.lattice, 0), layout.writes(case.lattice, 0)
    slots = [slot for side in sides for slot in {place.slot for place in side}]
    return sum(formats.widths[slot] for slot in slots) * formats.unit_bytes * len(case.fluids)


def _on_gpus(case: Case, gpu_memory: float | None) -> bool:
    """Whether the run is planned for GPUs: by name, by their memory, or since this machine has."""
    kind = case.backend.device_kind()
    return kind != "cpu" or (case.backend.name == "auto" and gpu_memory is not None)


LEAST_BUSY = 0.75


def idle_threads(case: Case, slabs: Sequence[Slab]) -> list[Finding]:
    """A finding if threads wait for others for more than a quarter of a step."""
    threads = case.backend.workers()
    slab = min(slabs, key=lambda each: each.planes)
    faces = sum(peer is not None for peer in (slab.lower, slab.upper)) * (len(slabs) > 1)
    edges = min(slab.planes, faces * case.ghost)
    share = busy(slab.planes, edges, threads)
    if share >= LEAST_BUSY:
        return []
    enough = max(n for n in range(1, threads) if busy(slab.planes, edges, n) >= LEAST_BUSY)
    first = f", {edges} of them before the others" if edges else ""
    text = (
        f"the {threads} threads of a rank share the {counted(slab.planes, 'plane')} of a slab"
        f"{first}, and are busy for {share:.0%} of a step at most; use {counted(enough, 'thread')} "
        "for each rank, or turn the box so that its longest side is the last"
    )
    return [Finding(WARNING, "backend.threads", text)]


def busy(planes: int, edges: int, threads: int) -> float:
    """The share of a step in which threads compute; `edges` planes are computed before the others.

    A thread computes whole planes. All planes are taken to be equal.
    """
    turns = ceil(edges / threads) + ceil((planes - edges) / threads)
    return planes / (threads * turns)

"""The layout that `auto` stands for in a run, chosen before anything is allocated."""

from math import prod

import numpy as np

from mpilbm.case.checks import problems_with
from mpilbm.case.model import Case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.core.units import counted
from mpilbm.layouts import Layout
from mpilbm.layouts.auto import Auto, Facts
from mpilbm.parallel.slabs import Slab
from mpilbm.solids import plane_costs
from mpilbm.solids.masks import require_masks
from mpilbm.solids.solid_cells import padded_ids
from mpilbm.solver.memory_plan import bytes_needed

SAMPLES = 8  # planes, evenly spaced, of which solid cells and links are counted
MOST_CELLS = 2**26  # of a plane; a mistyped size must be reported, not inspected
NARROW = 32  # cells of a row: in boxes no wider than this no tile of the sweep fits
FEW_SOLIDS = 0.08  # share of solid cells below which `indirect` saves nothing


def choose(
    case: Case, device: str, ranks: int, room: float | None, sweeps: bool = False
) -> tuple[Layout, str]:
    """The layout of a case, and the reason; "" if the case names its layout.

    The reason begins with the porosity, the share of fluid cells, if many cells are solid.

    device: kind of the device; room: bytes of memory of a rank, or None for unknown; sweeps: see
    Device.sweeps. Reads masks.
    """
    if not isinstance(case.layout, Auto):
        return case.layout, ""
    planes = _sampled(case)
    fluid = _fluid_share(case, planes)
    slab = max(plane_costs.slabs(case, ranks), key=lambda slab: slab.planes)
    counts = np.full(slab.planes + 2 * case.ghost + 2, int(fluid * prod(case.shape[1:])))

    def fits(layout: Layout) -> bool:
        """Whether the arrays of the largest slab fit; boundary lists are neglected."""
        if case.precision.storage not in layout.storages:
            return False
        need = bytes_needed(case.model_copy(update={"layout": layout}), slab, counts)
        return room is None or sum(need.values()) < room

    def allowed(layout: Layout) -> bool:
        """Whether a case file that names this layout is accepted."""
        return not problems_with(case, layout=layout)

    def wins(layout: Layout) -> bool:
        """Whether the device sweeps the case in this layout, with the flow of the others."""
        found = case.model_copy(update={"layout": layout})
        return sweeps and swept(found) and not layout.deviations(case)

    porous = 1 - fluid > FEW_SOLIDS
    saved = _saved(case, planes, device) if porous else -1.0
    facts = Facts(device, case.run.steps, fits, saved, wins)
    layout, why = case.layout.resolve(facts, allowed)
    return (
        layout,
        f"porosity {fluid:.2f} in {counted(len(planes), 'plane')}, {why}" if porous else why,
    )


def swept(case: Case) -> bool:
    """Whether a device that sweeps does so in the layout of the case."""
    return case.layout.sweeps(case) and case.domain.size[0] > NARROW


def would_sweep(case: Case) -> bool:
    """Device.sweeps of a present NVIDIA GPU elsewhere, with the settings of the case."""
    return case.backend.name in ("auto", "cuda") and getattr(case.backend, "fused", True)


def _sampled(case: Case) -> list[Slab]:
    """Single planes of a box with bodies; none if their cells cannot be counted.

    What is wrong with a mask or a size is reported later, with all other problems.
    """
    if not case.bodies or prod(case.shape[1:]) > MOST_CELLS:
        return []
    count, periodic = case.shape[0], case.domain.periodic[-1]
    numbers = np.unique(np.linspace(0, count - 1, min(count, SAMPLES)).astype(int)).tolist()
    return [Slab(case.shape, 0, 1, number, number + 1, periodic) for number in numbers]


def _fluid_share(case: Case, planes: list[Slab]) -> float:
    """The share of fluid cells in the sampled planes; 1 without samples."""
    if not planes:
        return 1.0
    try:
        require_masks(case)  # HDF5 must not open a damaged file
        shares = [np.mean(padded_ids(case, plane)[1:-1] == 0) for plane in planes]
    except CaseError:  # an invalid mask
        return 1.0
    return float(np.mean(shares))


def _saved(case: Case, planes: list[Slab], device: str) -> float:
    """The share of the memory traffic that `indirect` saves, see Facts."""
    costs = []
    for name in ("aa" if device == "cpu" else "ab", "indirect"):
        stored = case.model_copy(update={"layout": make("layouts", name)})
        found = [plane_costs.plane_costs(stored, plane.begin, plane.end) for plane in planes]
        costs.append(sum(int(cost.sum()) for cost in found if cost is not None))
    dense, listed = costs
    return 1 - listed / dense

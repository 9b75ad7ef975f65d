"""The speed of a case on GPUs, estimated from its memory traffic and measured shares of a copy.

    GLUPS = fluid cells / seconds of a step / 10^9
    seconds of a step = (cells bytes(layout) + links bytes(link)) / (share copy)

`copy` is the bandwidth of a device copy, bytes read and written per second. Cells are all cells of
the box, or in `indirect` the fluid cells. `share` is the part of this bandwidth that the layout
reached in single steps in large boxes (Layout.shares); small boxes are slower, and `moments` is
faster where it takes two steps in one pass. It is smaller in flows past bodies
(Layout.past_bodies) and with collisions that take longer than the traffic (Collision.speed). Not
for CPUs, where most collisions do.

Measured on an H200 with D3Q19: tools/measured/h200_bench_populations_…, h200_bench_half_…,
h200_bench_settings_…, h200_bench_moments_…; collisions: h200_bench_collisions_…, h200_bench_q27_…;
past a sphere in a channel of 1024 x 384 x 384 cells between an inlet and an outlet, one of four
H200: h200_4gpus_flows_….
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

from mpilbm.backends import Backend, Device
from mpilbm.case.case_findings import flow_along_walls, undamped_sound
from mpilbm.case.checks import problems_with
from mpilbm.case.model import Case
from mpilbm.core.errors import MpilbmError
from mpilbm.core.registry import make
from mpilbm.model.limits import stability
from mpilbm.parallel import Communicator, together
from mpilbm.parallel.slabs import Slab
from mpilbm.run.preflight import layout_choice
from mpilbm.run.preflight.inspection import is_usable
from mpilbm.run.preflight.report import Line
from mpilbm.solids import plane_costs
from mpilbm.solids.entry_list import EntryList
from mpilbm.solver.exchange_plan import why_single_steps

COPIED = 2**27  # bytes that measure the bandwidth of the memory
SWEPT: tuple[dict[str, Any], ...] = (  # collisions that a line of `check` names
    {"name": "regularized"},
    {"name": "regularized", "omega_bulk": 1},
    {"name": "recursive_regularized"},
    {"name": "recursive_regularized", "omega_bulk": 1},
)
LEAST_GAIN = 1.2  # that such a line reports


@dataclass(frozen=True)
class Estimate:
    """The facts of a run that determine its speed.

    copy    bytes per second of a device copy, on all ranks together
    fluid   fluid cells of the box
    links   links to bodies that are in boundary lists
    """

    copy: float
    fluid: int
    links: int

    def glups(self, case: Case) -> float | None:
        """The expected speed with the layout of the case; None if it was not measured.

        Several fluids and scalars, which have further arrays, were not.
        """
        if not case.single_fluid or case.scalars:
            return None
        share = case.layout.shares.get(case.precision.storage)
        if share is None or not self.fluid or not self.copy:
            return None
        if self.links:
            share *= case.layout.past_bodies
        share *= min(each.collision.speed for each in case.fluids)
        cells = self.fluid if case.layout.listed else prod(case.shape)
        seconds = plane_costs.traffic(case, cells, self.links) / (share * self.copy)
        return self.fluid / seconds / 1e9

    def lines(self, case: Case, copies: str, slabs: Sequence[Slab]) -> list[Line]:
        """The line of `check` on the speed; `copies`: the GPUs and the bandwidth of their copy."""
        found = self.glups(case)
        note = f"estimated for {copies}; small boxes are slower"
        if case.layout.sweeps(case):
            why = next(filter(None, (why_single_steps(case, slab) for slab in slabs)), "")
            two = f"not used here: {why}" if why else "up to 1.5 times as fast"
            note += f"; two steps in one pass: {two}"
        return [Line("speed", f"about {found:.3g} GLUPS", note)] if found else []

    def gain(self, case: Case, given: Case, speed: float) -> list[Line]:
        """The line of `check` on the sweep of `moments`, if this case could use it and does not.

        case, given: with the layout that was chosen, and as the file has it; speed: the largest of
        the flow. With the collision of the case, or with one that is stable at this speed.
        """
        found, solid = self.glups(case), 1 - self.fluid / prod(case.shape)
        if not found or not case.layout.populations or solid > layout_choice.FEW_SOLIDS:
            return []
        for table in (None, *SWEPT):
            swept = _swept(given, table, speed)
            gained = ((swept and self.glups(swept)) or 0) / found
            if swept and gained > LEAST_GAIN:
                what = 'layout "moments"' if table is None else f'collision "{table["name"]}"'
                notes = swept.layout.deviations(swept)
                if table is not None:
                    bulk = ["with omega_bulk = 1"] * ("omega_bulk" in table)
                    notes = [*bulk, "in the layout moments"]
                times = f"about {gained:.2g} times as fast"
                return [Line("faster", what, "; ".join([times, *notes]))]
        return []


def links_to_bodies(case: Case, lists: Sequence[EntryList]) -> int:
    """The number of links of a slab to bodies that are in boundary lists; see Geometry.lists."""
    counts = [0] * len(case.bodies)
    for each in lists:
        for k, owner in enumerate(each.owners):
            if owner.body is not None:
                counts[owner.body] += each.links[each.member == k].moving().total()
    return plane_costs.listed(case, counts)


def of_run(
    case: Case, device: Device, fluid: int, lists: Sequence[EntryList], comm: Communicator
) -> float | None:
    """The expected GLUPS of all ranks on NVIDIA GPUs; on other devices None. Collective.

    fluid: fluid cells of the box; lists: of the slab of this rank.
    """
    if device.kind != "cuda":
        return None

    def of_slab() -> tuple[float, int]:
        return device.copy_bandwidth(most=COPIED), links_to_bodies(case, lists)

    copies, links = zip(*comm.allgather(together(comm, of_slab)), strict=True)
    return Estimate(sum(copies), fluid, sum(links)).glups(case)


@cache
def bandwidth(backend: Backend) -> float | None:
    """Bytes that the device of a rank copies per second; None if it cannot be opened."""
    try:
        return backend.open().copy_bandwidth(most=COPIED)
    except MpilbmError:
        return None


def _swept(case: Case, table: dict[str, Any] | None, speed: float) -> Case | None:
    """The case in `moments`, with the collision of `table` if it is not None.

    None if the case may not use it, if no kernel sweeps it, or if `check` would report the other
    collision: its stability, walls that slide, or sound. An equal collision is not judged again.
    `speed` is 0 if the case gives none.
    """
    (fluid,), swept = case.fluids, make("layouts", "moments")
    changed = fluid
    if table is not None:
        used = make("collisions", table).model_copy(update={"closure": fluid.collision.closure})
        changed = fluid.model_copy(update={"collision": used})
    found = case.model_copy(update={"fluids": (changed,), "layout": swept})
    if problems_with(case, fluids=(changed,), layout=swept) or not layout_choice.swept(found):
        return None
    if table is None:
        return found
    if swept.deviations(found):
        return None
    if changed.collision.equal_to(case.lattice) == fluid.collision:
        return found
    if not speed or [*flow_along_walls(found), *undamped_sound(found)]:
        return None
    _, level = stability(found, changed, speed, partial(is_usable, case, fluid))
    return found if level == "good" else None

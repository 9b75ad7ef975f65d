"""The memory that each rank of a run needs, and the bytes that it sends in a step."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from mpilbm.case.model import Case
from mpilbm.codegen.program import Access, Kernel
from mpilbm.codegen.structure import averaged
from mpilbm.core.units import counted, in_words
from mpilbm.halo import Plan
from mpilbm.layouts.grid import FieldGrid
from mpilbm.model.findings import NOTE, Finding, either
from mpilbm.outputs.core import largest_plane
from mpilbm.parallel.slabs import Slab
from mpilbm.physics.lattices import Lattice
from mpilbm.run.preflight.report import Line
from mpilbm.solids.build import Survey
from mpilbm.solver.exchange_plan import exchange_plan
from mpilbm.solver.fields.sources import least_bytes
from mpilbm.solver.memory_plan import bytes_needed, host_bytes


def halo_bytes(
    case: Case,
    slab: Slab,
    fluid: NDArray[np.int64] | None = None,
    kernels: Mapping[str, Kernel] | None = None,
) -> tuple[int, int]:
    """Bytes and number of messages that a slab sends in a step, the largest of all parities.

    `fluid`: fluid cells of its planes, as Geometry.around. `kernels`: the kernels of the program of
    the case; by default they are generated if necessary.
    """
    lattice, layout, compute = case.lattice, case.layout, case.precision.compute
    size, unit = (slab.planes, slab.shape[1], slab.shape[2]), case.formats.unit
    peers = {1: slab.upper, -1: slab.lower}
    fields = []
    if case.coupling:
        shown, beside = range(len(case.coupling.neighbour_fields(case))), range(1, lattice.Q)
        field = FieldGrid.of(case, *size)
        reads = [Access(field.name, slot, lattice.offset(i)) for slot in shown for i in beside]
        fields = [(exchange_plan(field, (), reads), compute)] * (1 + averaged(case))

    def populations(
        lattice: Lattice,
        fluid: NDArray[np.int64] | None,
        parity: int,
        more: list[Access],
        name: str = "f",
    ) -> tuple[Plan, str]:
        grid = layout.grid(lattice, *size, fluid, case.ghost, case.precision.storage)
        grid = replace(grid, name=name)
        following = (parity + 1) % layout.parities
        writes = [Access(grid.name, *place) for place in layout.writes(lattice, parity)]
        reads = [Access(grid.name, *place) for place in layout.reads(lattice, following)]
        return exchange_plan(grid, writes, [*reads, *more]), unit

    found = []
    for parity in range(layout.parities):
        behind = _behind(case, (parity + 1) % layout.parities, kernels)
        plans = [populations(lattice, fluid, parity, behind)] * len(case.fluids) + fields
        carried = enumerate(case.scalars)
        plans += [populations(s.lattice, None, parity, behind, f"g{k}") for k, s in carried]
        sends = [
            send.count * np.dtype(kind).itemsize
            for plan, kind in plans
            for send in plan.sends
            if peers[send.neighbour] not in (None, slab.rank)
        ]
        found.append((sum(sends), len(sends)))
    return max(found)


def _behind(case: Case, parity: int, kernels: Mapping[str, Kernel] | None) -> list[Access]:
    """Reads of boundaries that use cells away from their walls, in a step of this parity."""
    if case.ghost == 1:
        return []
    if kernels is None:
        from mpilbm import codegen

        kernels = codegen.generate(case).kernels
    end = f"_{parity}{case.suffix(0)}"
    lists = [k for name, k in kernels.items() if k.over_links and name.endswith(end)]
    return [access for kernel in lists for access in kernel.reads]


def rank_lines(
    case: Case,
    slabs: tuple[Slab, ...],
    halo: tuple[int, int],
    survey: Survey,
    more: np.ndarray,
    gpu_memory: float | None,
    problems: list[str],
) -> list[Line]:
    """Planes and bytes of the largest slab, and whether it fits; `halo`: see sent_in_a_step."""
    planes = [slab.planes for slab in slabs]
    spread = counted(max(planes), "plane")
    spread = spread if len(set(planes)) == 1 else f"{min(planes)} to {spread}"
    on_host = _on_host(case, gpu_memory)
    needs = [memory(case, slab, survey, more, on_host) for slab in slabs]
    need = max(needs, key=lambda each: sum(each.values()))
    across = f"{spread} across {'xyz'[case.dimensions - 1]}"
    *arrays, total = memory_lines(case, len(slabs), need, gpu_memory, problems)
    sends, messages = halo
    messages_line = Line("halo", in_words(sends), f"sent per step, messages: {messages}")
    lines = [Line("slabs", f"{len(slabs)}", across), *arrays, messages_line, total]
    entries = (int(survey.entries[slab.begin : slab.end].sum()) for slab in slabs)
    starts = (host_bytes(case, slab, n) for slab, n in zip(slabs, entries, strict=True))
    most = in_words(max(sum(each.values()) for each in starts))
    lines.append(Line("start-up", most, "of main memory per rank at most, for the geometry"))
    count = 0 if on_host else sum(each.host_bytes(case, max(planes)) for each in case.outputs)
    if count:  # with CPU cores this is a part of the memory of a rank
        note = "of main memory per rank at most, for outputs"
        lines.append(Line("outputs", in_words(count), note))
    return lines


def _on_host(case: Case, gpu_memory: float | None) -> bool:
    name = case.backend.name
    return name == "cpu" or (
        name == "auto" and gpu_memory is None and case.backend.device_kind() == "cpu"
    )


def sent_in_a_step(case: Case, slabs: tuple[Slab, ...], survey: Survey) -> tuple[int, int]:
    """Bytes and number of messages that the slab in the middle sends in a step."""
    middle = slabs[len(slabs) // 2]
    return halo_bytes(case, middle, around(middle, survey, case.ghost))


def memory_lines(
    case: Case, ranks: int, need: dict[str, int], gpu_memory: float | None, problems: list[str]
) -> list[Line]:
    """Bytes of a rank by content, their sum, and whether it fits the memory.

    The memory is `gpu_memory` GB, or that of this machine for None.
    """
    total = sum(need.values())
    room: float | None
    if gpu_memory is not None:
        room, verdict, level = gpu_memory * 1e9, f"fits {gpu_memory:g} GB", "good"
        has, elsewhere = f"of {gpu_memory:g} GB", ""
    else:
        room, verdict, level = case.backend.room(), "", ""
        has = f"of {in_words(room)} that this machine has" if room is not None else ""
        elsewhere = "; --gpu-memory GB plans for another one"
    if room is not None and total > room:
        verdict, level = "does not fit", "poor"
        enough = ceil(total / room) * ranks
        fix = either(
            f"{enough} ranks or more" if enough <= case.shape[0] else "",
            "the layout 'aa'" if case.layout.buffers > 1 else "",
            f"a smaller box{elsewhere}",
        )
        problems.append(
            f"{case.path}: domain.size: a rank needs {in_words(total)} {has}; use {fix}"
        )
    lines = [Line(what, in_words(count), "per rank at most") for what, count in need.items()]
    return [*lines, Line("memory", in_words(total), verdict, level)]


def large_arrays(case: Case, slabs: tuple[Slab, ...], survey: Survey) -> list[Finding]:
    """A finding if an array is larger than the driver of this machine guarantees."""
    limit = case.backend.largest_array()
    if limit is None:
        return []
    arrays = len(case.fluids) * case.layout.buffers
    need = (bytes_needed(case, slab, around(slab, survey, case.ghost)) for slab in slabs)
    largest = max(each["populations"] for each in need) // arrays
    if largest <= limit:
        return []
    narrower = "" if case.precision.storage == "float16" else "16-bit storage"
    fix = either(narrower, "more ranks on more devices", "a smaller box")
    text = (
        f"an array of populations takes {in_words(largest)}, of which the driver of this device "
        f"guarantees {in_words(limit)}; if it refuses the array, use {fix}"
    )
    return [Finding(NOTE, "domain.size", text)]


def memory(
    case: Case, slab: Slab, survey: Survey, more: np.ndarray, on_host: bool
) -> dict[str, int]:
    """Bytes of a rank's arrays by content; `on_host`: its device uses the memory of the host.

    `more` is memory_plan.more_bytes of all planes of the box.
    """
    need = bytes_needed(case, slab, around(slab, survey, case.ghost))
    lists, forces, walls = (int(n) for n in more[slab.begin : slab.end].sum(axis=0))
    need["boundary lists"] = lists
    need |= {"wall cells": walls} if case.coupling else {}
    need |= {"forces on bodies": forces} if case.needs.weighed else {}
    for output in case.outputs:
        count = output.device_bytes(case, slab.planes)
        count += output.host_bytes(case, slab.planes) if on_host else 0
        if count:
            need[output.name] = need.get(output.name, 0) + count
    if any(output.stages(case) for output in case.outputs):
        need["copies for files"] = least_bytes(case, largest_plane(case))
    return need


def around(slab: Slab, survey: Survey, ghost: int) -> np.ndarray:
    """Fluid cells of each plane of a slab and of its neighbouring planes, as Geometry.around."""
    planes = [slab.global_plane(local) for local in range(-ghost - 1, slab.planes + ghost + 1)]
    return np.array([0 if plane is None else survey.fluid_cells[plane] for plane in planes])

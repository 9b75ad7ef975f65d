"""The main memory that a rank needs before its first step, against the memory plan."""

import tracemalloc

import numpy as np
import pytest
from support.local_world import LocalWorld
from support.slabs import box

from mpilbm import codegen
from mpilbm.backends import memory
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.layouts import grid
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run.run import run
from mpilbm.solids import (
    build,
    diagnose,
    isolated_fluid,
    missing_links,
    shares,
    solid_cells,
    wall_distance,
)
from mpilbm.solver import memory_plan
from mpilbm.solver.solver import Solver
from mpilbm.view.bench import rock

BODIES = {
    "rock": {"mask": "rock.npy", "boundary": {"name": "bounce_back"}},
    "disc": {
        "shape": {"name": "sphere", "centre": [32, 32], "radius": 24},
        "boundary": {"name": "bounce_back"},
    },
    "ball": {
        "shape": {"name": "sphere", "centre": [32, 32, 32], "radius": 24},
        "boundary": {"name": "interpolated"},
    },
    "cells": {
        "shape": {"name": "sphere", "centre": [32, 32, 32], "radius": 24},
        "boundary": {"name": "partially_saturated"},
    },
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks that are small compared with the box below."""
    for module in (missing_links, solid_cells, diagnose, isolated_fluid):
        monkeypatch.setattr(module, "CELLS", 2**12)
    monkeypatch.setattr(memory_plan, "CELLS", 2**12)
    monkeypatch.setattr(solid_cells, "POINTS", 2**12)
    monkeypatch.setattr(shares, "POINTS", 2**9)
    monkeypatch.setattr(wall_distance, "LINKS", 2**12)
    monkeypatch.setattr(grid, "PACKED", 2**12)


@pytest.mark.parametrize("body", ["rock", "ball", "cells"])
@pytest.mark.parametrize("layout", ["ab", "moments"])
def test_the_host_allocates_no_more_than_planned(body, layout, small_blocks, tmp_path):
    """While the geometry is built, and while its lists are prepared for the device."""
    np.save(tmp_path / "rock.npy", rock((64,) * 3).astype(np.uint8))
    more = {"layout": {"name": layout}, "collision": {"name": "regularized"}}
    tables = box("D3Q19", [64] * 3, body=[BODIES[body] | {"label": body}], **more)
    case = parse_case(tables, tmp_path / "a.toml")
    (slab,) = split(case.shape, 1, True)
    device = make("backends", "cpu").open()
    exchanger, program = LocalWorld(1).exchanger(0, slab, device), codegen.generate(case)
    device.compile(program)
    build.build(case, slab, diagnose.find)  # imports modules
    tracemalloc.start()
    try:
        shape = build.build(case, slab, diagnose.find)
        built = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        solver = Solver(case, slab, shape, device, exchanger, program)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    entries = sum(each.cells.size for each in shape.lists)
    links = sum(each.links.total() for each in shape.lists if each.per_link)
    planned = memory_plan.host_bytes(case, slab, entries, links)
    assert sum(planned.values()) / 3 < built < sum(planned.values())
    assert peak - kept < planned["preparation"]
    assert solver.slab == slab


def test_a_slab_that_does_not_fit_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "least", lambda: (2**20, 2**21))
    case = parse_case(box("D2Q9", [64, 64]), "test.toml")
    with pytest.raises(CaseError, match=r"a slab needs 50\.5 MB of main memory"):
        run(case, Serial(), tmp_path / "out")


@pytest.mark.parametrize("unified", [True, False])
def test_arrays_of_a_device_count_if_it_uses_the_main_memory(unified, monkeypatch):
    """Before the geometry is built, and with its lists; the host alone would have enough."""
    tables = box("D2Q9", [64, 64], body=[BODIES["disc"] | {"label": "disc"}])
    case = parse_case(tables, "test.toml")
    (slab,) = split(case.shape, 1, True)
    device = make("backends", "cpu").open()
    device.unified = unified
    shape = build.build(case, slab)
    entries = sum(each.cells.size for each in shape.lists)
    for lists, parts in (((), (0,)), (shape.lists, (entries,))):
        host = memory_plan.host_bytes(case, slab, *parts)
        needed = host["preparation"] if lists else sum(host.values())
        arrays = sum(memory_plan.bytes_needed(case, slab, shape.around).values())
        arrays += memory_plan.list_bytes(case, slab, lists).sum() if lists else 0
        monkeypatch.setattr(memory, "least", lambda n=needed: (n, 2**40))
        given = device, case, slab, 1, lists, shape.around
        if unified:
            with pytest.raises(CaseError, match="a slab needs"):
                memory_plan.require_host(*given)
            monkeypatch.setattr(memory, "least", lambda n=needed + arrays: (n, 2**40))
        memory_plan.require_host(*given)

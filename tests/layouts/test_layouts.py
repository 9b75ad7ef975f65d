"""Layouts: cells share no place, gather returns neighbours' populations, messages hold no more."""

import pickle
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from support.addresses import names_of
from support.equations import model
from sympy import simplify, symbols

from mpilbm.codegen.program import Access
from mpilbm.core.registry import make, names
from mpilbm.layouts import HERE, Layout, Place
from mpilbm.layouts.cells import LISTED
from mpilbm.layouts.grid import Grid, velocity_grid
from mpilbm.parallel import slabs as domain
from mpilbm.physics.algebra import populations
from mpilbm.solver.exchange_plan import exchange_plan

BOX = (5, 4, 3)  # planes, rows, nx
over_lattices = pytest.mark.parametrize("lattice", [make("lattices", n) for n in names("lattices")],
                                        ids=lambda lattice: lattice.name)  # fmt: skip
LAYOUTS = [make("layouts", n) for n in names("layouts")]
over_all_layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
over_layouts = pytest.mark.parametrize(
    "layout", [one for one in LAYOUTS if one.populations], ids=lambda layout: layout.name
)

over_dense_layouts = pytest.mark.parametrize(
    "layout", [one for one in LAYOUTS if one.name != "indirect"], ids=lambda layout: layout.name
)


def places(what, lattice, parity) -> list[Place]:
    return [what(lattice, i, parity) for i in range(lattice.Q)]


def box_of(lattice):
    return BOX if lattice.D == 3 else (BOX[0], 1, BOX[2])


def cells_at(lattice, place) -> list[tuple]:
    """The locations that all cells of a periodic box touch at this place."""
    shape = box_of(lattice)
    cells = product(*map(range, shape))
    return [(place.slot, *(np.add(cell, place.offset) % shape).tolist()) for cell in cells]


@over_layouts
@over_lattices
def test_each_location_is_touched_by_one_cell(lattice, layout):
    for parity in range(layout.parities):
        sides = [places(what, lattice, parity) for what in (layout.gather, layout.scatter)]
        touched = sides if layout.buffers > 1 else [set(sides[0]) | set(sides[1])]
        for group in touched:
            count = Counter(where for place in group for where in cells_at(lattice, place))
            assert set(count.values()) == {1}
            assert len(count) == lattice.Q * np.prod(box_of(lattice))


class Racing(Layout):
    """Pull in a single array: a cell overwrites what its neighbour still has to read."""

    name: ClassVar[str] = "racing"

    def gather(self, lattice, i, parity):
        return make("layouts", "ab").gather(lattice, i, parity)

    def scatter(self, lattice, i, parity):
        return Place(i, HERE)


class Sharing(Racing):
    """Reads the places it writes, but two cells share one: slot 1 of a cell and its neighbour."""

    def gather(self, lattice, i, parity):
        return Place(1, lattice.offset(1)) if i == 2 else Place(i, HERE)

    scatter = gather


@pytest.mark.parametrize("layout", [Racing, Sharing])
def test_a_layout_in_which_cells_race_is_refused(layout):
    with pytest.raises(ValueError, match="racing"):
        layout().check_in_place(make("lattices", "D3Q19"))


def look(array, place) -> np.ndarray:
    """Values of a periodic array (Q, planes, rows, nx) at a place, for all cells."""
    return np.roll(array[place.slot], [-k for k in place.offset], (0, 1, 2))


def put(array, place, values) -> None:
    array[place.slot] = np.roll(values, place.offset, (0, 1, 2))


def collide(f):
    """An operation that mixes the directions and treats each differently."""
    return 0.7 * f + 0.2 * np.roll(f, 1, axis=0) + 0.1 * f**2


@over_layouts
@over_lattices
def test_gather_finds_populations_of_the_neighbours(lattice, layout):
    left = np.random.default_rng(7).random((lattice.Q, *box_of(lattice)))
    arrays = [np.full_like(left, np.nan) for _ in range(layout.buffers)]
    for place, values in zip(places(layout.f_out, lattice, 0), left, strict=True):
        put(arrays[0], place, values)
    for step in range(5):
        parity = step % layout.parities
        source, target = arrays[step % layout.buffers], arrays[(step + 1) % layout.buffers]
        arrived = [np.roll(f, lattice.offset(i), (0, 1, 2)) for i, f in enumerate(left)]
        found = [look(source, place) for place in places(layout.gather, lattice, parity)]
        assert np.array_equal(found, arrived)
        left = collide(np.array(arrived))
        for place, values in zip(places(layout.scatter, lattice, parity), left, strict=True):
            put(target, place, values)
        following = places(layout.f_out, lattice, (step + 1) % layout.parities)
        assert np.array_equal([look(target, place) for place in following], left)


def accesses(layout, lattice, parity):
    """(writes of a step, reads of the next) as a kernel states them."""
    following = (parity + 1) % layout.parities
    sides = layout.writes(lattice, parity), layout.reads(lattice, following)
    return [[Access("f", *place) for place in side] for side in sides]


def plan_of(layout, lattice, parity, planes):
    rows, nx = box_of(lattice)[1:]
    grid = layout.grid(lattice, planes, rows, nx, [rows * nx] * (planes + 4))
    return grid, exchange_plan(grid, *accesses(layout, lattice, parity))


def content(grid, transfer) -> list[tuple[int, int]]:
    """(plane of the array, place in it) of the values that a transfer moves."""
    whole = range(grid.planes + 2 * grid.ghost), range(len(grid.slots))
    pieces = {(plane, slot): grid.piece(plane, slot, 1) for plane, slot in product(*whole)}
    end = transfer.start + transfer.count
    found = [where for where, (start, _) in pieces.items() if transfer.start <= start < end]
    assert sum(pieces[where][1] for where in found) == transfer.count
    assert pieces[found[0]][0] == transfer.start
    return found


@over_layouts
@over_lattices
def test_a_face_sends_one_message_with_only_the_crossing_populations(lattice, layout):
    crossing = {way: sum(c[-1] == way for c in lattice.c) for way in (+1, -1)}
    for parity, planes in product(range(layout.parities), (1, 2, 7)):
        grid, plan = plan_of(layout, lattice, parity, planes)
        for transfers in (plan.sends, plan.receives):
            assert sorted(t.neighbour for t in transfers) == [-1, +1]
            for t in transfers:
                assert len(content(grid, t)) == crossing[t.neighbour]


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_moments_travel_as_they_are_in_one_message_a_face(lattice):
    lattice = make("lattices", lattice)
    grid, plan = plan_of(make("layouts", "moments"), lattice, 0, 7)
    for transfers in (plan.sends, plan.receives):
        assert sorted(t.neighbour for t in transfers) == [-1, +1]
        assert [len(content(grid, t)) for t in transfers] == [10 if lattice.D == 3 else 6] * 2


@over_all_layouts
@over_lattices
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_slabs_of_unequal_size_have_all_that_the_next_step_reads(lattice, layout, ranks):
    """What travels stays at its place of the box; own writes and arrivals are all that is read."""
    slabs = domain.split(box_of(lattice), ranks, True)
    whole = slabs[0].shape[0]
    for parity in range(layout.parities):
        writes, reads = accesses(layout, lattice, parity)
        plans = [plan_of(layout, lattice, parity, slab.planes) for slab in slabs]
        for slab, (grid, plan) in zip(slabs, plans, strict=True):
            own = range(grid.ghost, grid.ghost + slab.planes)
            written, read = (
                {(plane + a.offset[0], grid.slots[a.slot]) for a in side for plane in own}
                for side in (writes, reads)
            )
            arrived = []
            for way, rank in ((+1, slab.upper), (-1, slab.lower)):
                other, (other_grid, other_plan) = slabs[rank], plans[rank]
                sent = [t for t in other_plan.sends if t.neighbour == -way]
                got = [t for t in plan.receives if t.neighbour == way]
                for source, target in zip(sent, got, strict=True):
                    pairs = zip(content(other_grid, source), content(grid, target), strict=True)
                    for (from_plane, from_slot), (to_plane, to_slot) in pairs:
                        assert from_slot == to_slot
                        here = to_plane - grid.ghost + slab.begin
                        there = from_plane - other_grid.ghost + other.begin
                        assert (here - there) % whole == 0
                        arrived.append((to_plane, to_slot))
            assert read <= written | set(arrived)
            assert not set(arrived) & {(p, s) for p, s in written if p in own}
            assert len(arrived) == len(set(arrived))


def test_what_a_cell_wrote_beyond_its_slab_is_not_fetched_back():
    """As in layouts that write and read the same places: it travels once, to where it belongs."""
    grid = Grid.dense("f", 5, 4, 3, (0, 1, 2), 1)
    both = [Access("f", 1, (1, 0, 0))]
    plan = exchange_plan(grid, both, both)
    assert [t.neighbour for t in plan.sends] == [+1]
    assert content(grid, plan.sends[0]) == [(6, 1)]
    assert content(grid, plan.receives[0]) == [(1, 1)]


def test_of_two_planes_those_travel_that_others_wrote():
    """Of what a cell reads two planes up, the first was written by the slab itself."""
    grid = Grid.dense("f", 5, 4, 3, (0, 1, 2), 2)
    writes, reads = ([Access("f", 1, (k, 0, 0))] for k in (1, 2))
    plan = exchange_plan(grid, writes, reads)
    assert [t.neighbour for t in plan.sends] == [+1, -1]
    assert [content(grid, t) for t in plan.sends] == [[(7, 1)], [(3, 1)]]
    assert [content(grid, t) for t in plan.receives] == [[(2, 1)], [(8, 1)]]
    with pytest.raises(ValueError, match="2 planes must be exchanged; the slab has 1"):
        exchange_plan(Grid.dense("f", 1, 4, 3, (0, 1, 2), 2), writes, reads)


@over_lattices
def test_velocity_planes_travel_whole_and_only_where_the_curl_looks(lattice):
    grid = velocity_grid(lattice, 1, 6, *box_of(lattice)[1:])
    reads = [Access("u", k, (side, 0, 0)) for k in range(lattice.D - 1) for side in (-1, +1)]
    other = [Access("f", k, (1, 0, 0)) for k in range(lattice.D)]
    plan = exchange_plan(grid, (), [*reads, *other])
    assert [t.neighbour for t in plan.sends] == [+1, -1]
    assert {t.count for t in plan.sends + plan.receives} == {(lattice.D - 1) * grid.slot_stride}


SIZES = [(1, 1, 1), (5, 4, 13), (3, 64, 32), (2, 33, 100), (4, 128, 128), (2, 256, 512)]


@over_dense_layouts
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_strides_of_a_slab(layout, size):
    lattice = make("lattices", "D3Q19")
    planes, rows, nx = size
    grid = layout.grid(lattice, *size)
    strides = grid.row_stride, grid.slot_stride, grid.plane_stride
    for stride in strides:
        assert stride * np.dtype("float32").itemsize % 128 == 0
    assert nx <= grid.row_stride < nx + 32
    assert rows * grid.row_stride <= grid.slot_stride < rows * grid.row_stride + 32 * 32
    assert grid.plane_stride == len(layout.slots(lattice)) * grid.slot_stride
    assert grid.count == (planes + 2 * grid.ghost) * grid.plane_stride
    assert grid.slot_stride <= 32 * 32 or grid.slot_stride % (4 * 32)  # off powers of two
    expected = dict(zip(("f_row", "f_slot", "f_plane"), strides, strict=True))
    expected |= {"f_first": 1, "f_last": planes, "f_turn": 0}
    assert grid.arguments() == expected
    assert replace(grid, wraps=True).arguments() == expected | {"f_turn": planes}
    assert replace(grid, wraps=None).arguments().keys() == {"f_row", "f_slot", "f_plane"}
    assert grid.interior == (grid.ghost, grid.ghost + planes)


@pytest.mark.parametrize("wraps", [None, False, True])
@over_lattices
def test_addresses_are_those_of_the_wrapped_neighbour(lattice, wraps):
    """f[plane, slot, row, x]: all places of all cells lie apart, inside the array."""
    planes, rows, nx = box_of(lattice)
    grid = Grid.dense("f", planes, rows, nx, lattice.slots, 1, wraps=wraps)
    shape = (planes + 2, lattice.Q, grid.slot_stride)
    for i, offset in product(range(lattice.Q), map(lattice.offset, range(lattice.Q))):
        text = compile(grid.address(i, offset), "address", "eval")
        for plane, row, x in product(range(1, planes + 1), range(rows), range(nx)):
            values = {"plane": plane, "row": row, "x": x} | names_of(grid)
            values |= {"row_m": (row - 1) % rows, "row_p": (row + 1) % rows}
            values |= {"x_m": (x - 1) % nx, "x_p": (x + 1) % nx}
            there = (row + offset[1]) % rows * grid.row_stride + (x + offset[2]) % nx
            place = 1 + (plane + offset[0] - 1) % planes if wraps else plane + offset[0]
            expected = np.ravel_multi_index((place, lattice.slots[i], there), shape)
            assert eval(text, values) == expected


@pytest.mark.parametrize(("wraps", "place"), [(False, 0), (True, 7)])
def test_a_listed_cell_may_lie_in_a_ghost_plane(wraps, place):
    """Its own plane wraps around, too, and so do two steps from the last plane but one."""
    grid = Grid.dense("f", 7, 1, 32, (0,), 1, wraps=wraps)
    values = {"row": 0, "x": 0, "plane": 0} | names_of(grid)
    assert eval(grid.address(0, (0, 0, 0), LISTED), values) == place * grid.plane_stride
    beyond = 8 - 7 * wraps
    assert eval(grid.address(0, (2, 0, 0), LISTED), values | {"plane": 6}) == (
        beyond * grid.plane_stride
    )


@pytest.mark.parametrize(
    "lattice",
    [one for n in names("lattices") for one in [make("lattices", n)] if one.isotropy >= 4],
    ids=lambda lattice: lattice.name,
)
def test_moments_hold_all_that_a_regularized_collision_leaves(lattice):
    """Populations -> what is stored -> populations, exactly; six or ten values."""
    layout, number = make("layouts", "moments"), 1 + lattice.D + lattice.D * (lattice.D + 1) // 2
    of = model(lattice.name, "regularized")
    given = symbols(" ".join(f"m_{k}" for k in range(number)))
    density, momentum, second = given[0], given[1 : 1 + lattice.D], given[1 + lattice.D :]
    f = populations(lattice, density, momentum, second)
    kept = layout.stored(lattice, 0, f, of)
    assert [place for place, _ in kept] == [Place(k, HERE) for k in range(number)]
    stored = dict(kept)
    found = layout.outgoing(lattice, 0, lambda _, place: stored[place], of)
    assert all(simplify(a - b) == 0 for a, b in zip(found, f, strict=True))


def test_ranks_without_the_class_of_a_layout_receive_it_by_its_name(monkeypatch):
    """Classes of plug-ins have no module that pickle could import."""
    found = make("layouts", "moments")
    monkeypatch.setattr(type(found), "__module__", "no_module")
    assert pickle.loads(pickle.dumps(found)) == found

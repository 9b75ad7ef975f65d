"""Solids and entry lists against a slow reference that looks at every cell and direction."""

from itertools import product

import numpy as np
import pytest
from support.geometry_cases import Wall, body, make_case

from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names
from mpilbm.parallel.slabs import split
from mpilbm.solids.build import build, check, require_fluid, survey

LATTICES = [make("lattices", name) for name in names("lattices")]


def reference_solid(case):
    """Ids of the whole box, {cell (x, y[, z]): id}, one stored cell after another."""
    ids = {}
    for cell in product(*(range(n) for n in case.domain.size)):
        if sum(cell) % case.lattice.volume:
            continue
        ids[cell] = 0
        for k, entry in enumerate(case.bodies):
            if entry.mask:
                solid = np.load(case.directory / entry.mask)[cell[::-1]]
            else:
                solid = inside_an_image(entry.shape, case.domain, cell)
            ids[cell] = k + 1 if solid else ids[cell]
    return ids


def inside_an_image(shape, domain, cell) -> bool:
    """Whether a cell is in a bounded shape, moved by up to three boxes along periodic axes."""
    moves = [(-3, -2, -1, 0, 1, 2, 3) if p else (0,) for p in domain.periodic]
    return any(
        shape.inside(*(a + 0.5 + k * n for a, k, n in zip(cell, each, domain.size, strict=True)))
        for each in product(*moves)
    )


def reference_links(case, ids):
    """The law of ownership, word by word: set of (cell, i, owner)."""
    found = set()
    size, periodic = case.domain.size, case.domain.periodic
    for cell, i in product(ids, range(case.lattice.Q)):
        if ids[cell]:
            continue
        source = [a - c for a, c in zip(cell, case.lattice.c[i], strict=True)]
        crossed = []
        for axis, (a, n) in enumerate(zip(source, size, strict=True)):
            if not 0 <= a < n and not periodic[axis]:
                crossed.append("xyz"[axis] + ("-" if a < 0 else "+"))
        owners = [k for k, wall in enumerate(case.boundaries) if set(wall.where) & set(crossed)]
        if owners:
            found.add((cell, i, owners[-1]))
            continue
        solid = ids[tuple(a % n for a, n in zip(source, size, strict=True))]
        if solid:
            found.add((cell, i, len(case.boundaries) + solid - 1))
    return found


def owners_of(case, entries):
    """Places in the file of the boundaries of one list, in its rows' order."""
    every = (*case.boundaries, *(entry.boundary for entry in case.bodies))
    return [k for k, wall in enumerate(every) if wall.structure() == entries.structure], every


def links(case, slab, geometry):
    """The lists as a set of (cell, i, owner); also checks order, types and values."""
    _, rows, nx = case.shape
    found = set()
    for entries in geometry.lists:
        owners, every = owners_of(case, entries)
        assert (entries.cells.dtype, entries.links.bits.dtype) == (np.int64, np.uint32)
        assert (entries.given.row.dtype, entries.given.rows.dtype) == (np.int32, np.float64)
        wanted = [list(every[k].values().values()) or [0.0] for k in owners]
        np.testing.assert_array_equal(entries.given.rows, wanted)
        order = list(zip(entries.cells, entries.given.row, strict=True))
        assert order == sorted(set(order))
        for (number, value), missing in zip(order, entries.links.flags(), strict=True):
            assert missing.any()
            plane, rest = divmod(int(number), rows * nx)
            row, x = divmod(rest, nx)
            plane += slab.begin
            x = case.lattice.x(plane, row, x)
            place = (x, row, plane) if case.dimensions == 3 else (x, plane)
            for i in range(32):
                if missing[i]:
                    found.add((place, i, owners[value]))
    return found


def compare(case):
    ids = reference_solid(case)
    wanted = reference_links(case, ids)
    assert wanted or not (case.boundaries or case.bodies)
    solid = np.full(case.shape, -1)
    for (x, *row, plane), value in ids.items():
        solid[plane, row or 0, x // case.lattice.volume] = value
    whole = build(case, *split(case.shape, 1, case.domain.periodic[-1])).lists
    for ranks in range(1, min(4, case.shape[0]) + 1):
        slabs = split(case.shape, ranks, case.domain.periodic[-1])
        parts = [build(case, slab) for slab in slabs]
        np.testing.assert_array_equal(np.concatenate([part.solid for part in parts]), solid)
        fluid = np.concatenate([part.fluid_cells for part in parts])
        np.testing.assert_array_equal(fluid, (solid == 0).sum(axis=(1, 2)))
        found = [links(case, slab, part) for slab, part in zip(slabs, parts, strict=True)]
        assert sum(len(part) for part in found) == len(wanted)
        assert set().union(*found) == wanted
        for k, one in enumerate(whole):
            for of in (lambda each: each.links.bits, lambda each: each.given.row):
                joined = np.concatenate([of(part.lists[k]) for part in parts])
                np.testing.assert_array_equal(joined, of(one))
    return ids, wanted


def count(wanted, owner):
    return sum(link[2] == owner for link in wanted)


@pytest.mark.parametrize("periodic", ["", "x", "z", "yz", "xyz"])
@pytest.mark.parametrize(
    "lattice", [one for one in LATTICES if one.D == 3], ids=lambda one: one.name
)
def test_solids_and_links_in_three_dimensions(lattice, periodic):
    bodies = (
        body(Wall(kind="wall"), name="sphere", centre=[2.5, 2, 4.3], radius=1.6),
        body(Wall(kind="moving", u=0.3), name="box", lower=[-1, 1, 11], upper=[2, 3, 20]),
    )
    compare(make_case(lattice, (5, 4, 13), periodic, bodies=bodies))


@pytest.mark.parametrize("periodic", ["", "x", "y", "xy"])
@pytest.mark.parametrize("solids", [False, True])
@pytest.mark.parametrize(
    "lattice", [one for one in LATTICES if one.D == 2], ids=lambda one: one.name
)
def test_solids_and_links_in_two_dimensions(lattice, periodic, solids):
    bodies = (
        body(Wall(kind="wall"), name="sphere", centre=[1, 0.5], radius=1.2),
        body(Wall(kind="else", rho=1.0, u=0.2), name="cylinder", centre=[5, 6], radius=2.2),
    )
    compare(make_case(lattice, (7, 9), periodic, bodies=bodies if solids else ()))


def test_box_of_one_cell_along_some_axes():
    for lattice in LATTICES:
        for periodic in ("", "xyz"[: lattice.D]):
            compare(make_case(lattice, (1, 3, 1)[: lattice.D], periodic))


def test_every_face_with_its_own_boundary_and_links_to_the_later_one():
    lattice = make("lattices", "D3Q27")
    walls = tuple(
        Wall(face, kind="wall", u=float(k))
        for k, face in enumerate(["z+", "x-", "y+", "z-", "x+", "y-"])
    )
    _, wanted = compare(make_case(lattice, (3, 4, 5), boundaries=walls))
    corner = {link[2] for link in wanted if link[0] == (0, 0, 4) and link[1]}
    assert corner == {0, 1, 5}
    diagonal = lattice.c.index((1, 1, -1))
    assert ((0, 0, 4), diagonal, 5) in wanted


def test_mask_with_a_shape_painted_over_it(tmp_path):
    rock = np.random.default_rng(3).random((13, 4, 5)) < 0.3
    np.save(tmp_path / "rock.npy", rock)
    bodies = (
        body(Wall(kind="rock"), mask="rock.npy"),
        body(
            Wall(kind="wall", u=0.0),
            name="cylinder",
            centre=[2.5, 2, 3],
            radius=1.1,
            axis="z",
            length=5,
        ),
        body(Wall(kind="wall", u=0.5), name="cylinder", centre=[9, 2, 3], radius=1.1, axis="x"),
    )
    walls = Wall("y-", u=0.0), Wall("y+", u=0.0)
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "xz", walls, bodies)
    case.directory = tmp_path
    ids, wanted = compare(case)

    counts = survey(case, 3)
    painted = list(ids.values())
    assert counts.solid_cells == tuple(painted.count(k) for k in (1, 2, 3))
    assert counts.fluid_cells.sum() == painted.count(0)
    assert counts.links == (count(wanted, 0), count(wanted, 1))
    assert counts.body_links == tuple(count(wanted, k) for k in (2, 3, 4))
    assert counts.entries.sum() == len({(cell, owner) for cell, _, owner in wanted})
    lost = sum(rock[cell[::-1]] and ids[cell] == 2 for cell in ids)
    assert counts.overlaps[0, 1] >= lost > 0
    for planes in (1, 13, 64):
        again = survey(case, planes)
        assert (again.links, again.body_links, again.overlaps) == (
            counts.links, counts.body_links, counts.overlaps)  # fmt: skip
        np.testing.assert_array_equal(again.entries, counts.entries)


def test_nothing_to_do_in_an_empty_periodic_box():
    case = make_case(LATTICES[0], (5, 4, 3)[: LATTICES[0].D], "xyz", ())
    (slab,) = split(case.shape, 1, True)
    geometry = build(case, slab)
    assert geometry.lists == ()
    assert geometry.fluid_cells.sum() == np.prod(case.domain.size)


def test_ranks_without_entries_keep_the_list():
    lattice = make("lattices", "D3Q19")
    ball = body(Wall(), name="sphere", centre=[2, 2, 2], radius=1)
    case = make_case(lattice, (5, 4, 13), "xyz", (), (ball,))
    geometry = build(case, split(case.shape, 4, True)[2])
    assert [entries.cells.size for entries in geometry.lists] == [0]


def test_many_bodies():
    balls = tuple(
        body(Wall(u=float(k)), name="box", lower=[k % 5, k // 5 % 4, k // 20], upper=[9, 9, 99])
        for k in range(255)
    )
    case = make_case(make("lattices", "D3Q19"), (5, 4, 14), "xyz", (), balls)
    (slab,) = split(case.shape, 1, True)
    solid = build(case, slab).solid
    assert (solid.dtype, solid.max()) == (np.uint16, 255)


def test_pieces_do_not_change_a_shape(monkeypatch):
    ball = body(Wall(), name="sphere", centre=[3, 2, 6], radius=3.3)
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "xyz", (), (ball,))
    (slab,) = split(case.shape, 1, True)
    whole = build(case, slab).solid
    monkeypatch.setattr("mpilbm.solids.solid_cells.POINTS", 1)
    np.testing.assert_array_equal(build(case, slab).solid, whole)


def test_faces_named_wrongly():
    walls = Wall("x-", "y-", "top"), Wall("x-", "z+"), Wall()
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "y", walls)
    with pytest.raises(CaseError) as error:
        check(case)
    assert str(error.value).splitlines() == [
        "a.toml: boundary.0.where: face 'y-' is periodic; remove it here or set "
        "domain.periodic.1 = false",
        "a.toml: boundary.0.where: found 'top'; allowed faces: x-, x+, y-, y+, z-, z+",
        "a.toml: boundary.1.where: face 'x-' is named by boundary.0.where already; remove one of "
        "them",
        "a.toml: boundary.2.where: names no face; list the faces or remove the entry",
        "a.toml: boundary: face 'x+' is neither periodic nor named; add it to the 'where' of a "
        "[[boundary]] or set domain.periodic.0 = true",
        "a.toml: boundary: face 'z-' is neither periodic nor named; add it to the 'where' of a "
        "[[boundary]] or set domain.periodic.2 = true",
    ]
    (slab,) = split(case.shape, 1, False)
    with pytest.raises(CaseError, match="neither periodic"):
        build(case, slab)


def test_no_z_faces_in_two_dimensions():
    case = make_case(make("lattices", "D2Q9"), (5, 4), "xy", (Wall("z-"),))
    with pytest.raises(CaseError, match=r"found 'z-'; allowed faces: x-, x\+, y-, y\+$"):
        check(case)


@pytest.mark.parametrize("x", [-2.5, 7.6, 5 + 1.5])
def test_body_outside_the_box(x):
    ball = body(Wall(), name="sphere", centre=[x, 2, 6], radius=1.5)
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "yz", bodies=(ball,))
    with pytest.raises(CaseError, match=r"body.0.shape: body 'ball' .* outside the box.*move it"):
        check(case)
    check(make_case(make("lattices", "D3Q19"), (5, 4, 13), "xyz", (), (ball,)))


def test_body_with_faces():
    ball = body(Wall("x-"), name="sphere", centre=[2, 2, 6], radius=1.5)
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "xyz", (), (ball,))
    with pytest.raises(
        CaseError, match=r"body.0.boundary.where: the boundary of body 'ball' .* remove 'where'"
    ):
        check(case)


def test_no_fluid_at_all():
    brick = body(Wall(), name="box", lower=[0, 0, 0], upper=[5, 4, 13])
    case = make_case(make("lattices", "D3Q19"), (5, 4, 13), "xyz", (), (brick,))
    cells = survey(case).fluid_cells.sum()
    with pytest.raises(CaseError, match="found no fluid cell"):
        require_fluid(case, cells)
    require_fluid(case, 1)

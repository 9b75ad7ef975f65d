"""Boundaries that know their normal, look inwards or keep a state: neither cut nor layout shows."""

from itertools import product

import h5py
import numpy as np
import pytest
from support.faces import NAMES, closed, four_faces, table
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import names
from mpilbm.parallel import slabs as domain
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solids import build

OTHERS = [name for name in names("layouts") if name != "ab"]


@pytest.mark.parametrize("first", range(0, len(NAMES), 2))
def test_slabs_layouts_and_restarts_are_not_seen(first):
    layout = OTHERS[first // 2 % len(OTHERS)]
    before, after = four_faces(first, "ab"), four_faces(first, layout)
    whole = Cluster(before).start().run(7)
    assert np.isfinite(whole.state()).all()
    half = Cluster(before, 3).start().run(4)
    if layout == "moments":
        moments = Cluster(after).start().run(7)
        assert np.array_equal(Cluster(after, 3).start().run(7).state(), moments.state())
        fields = moments.fields("rho", "u")
        for name, values in whole.fields("rho", "u").items():
            assert np.abs(fields[name] - values).max() < 3e-6
        after = before
    resumed = Cluster(after, 2).restore(half.state(), 4, half.kept()).run(3)
    assert np.array_equal(resumed.state(), whole.state())
    for label, (cells, values) in whole.kept().items():
        found = resumed.kept()[label]
        assert np.array_equal(found[0], cells)
        assert np.array_equal(found[1], values)
        assert np.any(values)


def test_checkpoints_keep_what_boundaries_keep(tmp_path):
    """A run in two parts, with another layout and boundaries that look elsewhere refused."""
    first = NAMES.index("grad")
    tables = four_faces(first, "aa")
    tables |= {"output": [{"name": "checkpoint", "every": 4}], "backend": {"name": "cpu"}}
    tables["run"] = {"steps": 6}
    case = parse_case(tables, "test.toml")
    run(case, Serial(), tmp_path / "whole")
    run(case.model_copy(update={"run": case.run.model_copy(update={"steps": 4})}),
        Serial(), tmp_path / "parts")  # fmt: skip
    case = parse_case(tables | {"layout": {"name": "esopull"}}, "test.toml")
    run(case, Serial(), tmp_path / "parts", restart="auto")
    with (
        h5py.File(tmp_path / "whole/checkpoint_000000006.h5") as whole,
        h5py.File(tmp_path / "parts/checkpoint_000000006.h5") as parts,
    ):
        (kept,) = (name for name in whole if name.startswith("boundary."))
        assert whole[kept].attrs["names"].tolist() == ["second_0", "second_1", "second_2"]
        for name in ("fluid/f", f"{kept}/cells", f"{kept}/values"):
            assert np.array_equal(whole[name], parts[name])
    tables["boundary"][0]["name"] = "do_nothing"
    other = parse_case(tables, "test.toml")
    with pytest.raises(CaseError, match="state of boundaries"):
        run(other, Serial(), tmp_path / "parts", restart=tmp_path / "whole/checkpoint_000000006.h5")


def test_entries_of_edges_belong_to_one_boundary():
    """Also among the faces of one entry; who sets whole cells takes what streams in of them."""
    later = table("regularized", "x-", "y-", D=2)
    walls = [table("bounce_back", "x+", D=2), later, table("zou_he", "y+", D=2)]
    case = parse_case(closed("D2Q9", [5, 4], walls), "test.toml")
    (slab,) = domain.split(case.shape, 1, False)
    lists = {
        (each.boundary.name, each.boundary.where[0]): each for each in build.build(case, slab).lists
    }
    supplied = np.zeros((20, 9), int)
    for each, i in product(lists.values(), range(9)):
        supplied[each.cells, i] += each.links.has(i)
    assert supplied.max() == 1
    whole = np.zeros((4, 5), bool)
    whole[:, 0] = whole[0] = True  # the cells at x- and y-
    assert np.array_equal(supplied.all(axis=1), whole.reshape(-1))
    c = case.lattice.c

    def owner(cell, i):
        (found,) = (key for key, each in lists.items()
                    if each.links[each.cells == cell].has(i).any())  # fmt: skip
        return found

    assert owner(0, c.index((1, 1))) == ("regularized", "y-")
    assert owner(0, c.index((1, -1))) == ("regularized", "x-")
    assert owner(0, c.index((-1, -1))) == ("regularized", "y-")  # from the fluid
    assert owner(15, c.index((1, -1))) == ("zou_he", "y+")
    assert owner(4, c.index((-1, 1))) == ("regularized", "y-")  # on-site
    assert owner(4, c.index((-1, -1))) == ("bounce_back", "x+")


def through(nx: int, ny: int, **tables):
    ends = [table("bounce_back", "x-", "x+", D=2), table("zou_he", "y+", D=2)]
    return closed("D2Q9", [nx, ny], [*ends, table("neumann", "y-", D=2)], **tables)


@pytest.mark.parametrize("ranks", [3, 4])
def test_a_rank_owns_all_that_its_face_looks_at(ranks):
    """Three planes, and not less; a box that has no more replaces what is missing."""
    case = parse_case(through(5, 9), "test.toml")
    slabs = domain.split(case.shape, ranks, False)
    if ranks == 3:
        assert [each.replaced for each in build.build(case, slabs[0]).lists] == [0, 0, 0]
        return
    for find in (lambda: build.build(case, slabs[0]), lambda: plan(case, ranks)):
        with pytest.raises(CaseError, match=r"'neumann' at y- reads 2 cells .* at most 3 ranks"):
            find()
    case = parse_case(through(5, 2), "test.toml")
    (slab,) = domain.split(case.shape, 1, False)
    assert [each.replaced for each in build.build(case, slab).lists] == [0, 5, 0]


def test_cells_inwards_are_fluid():
    """A body blocks the neighbour: the nearest fluid cell before it is used."""
    block = {"name": "box", "lower": [1, 1], "upper": [3, 4]}
    bodies = [{"shape": block, "boundary": {"name": "bounce_back"}}]
    case = parse_case(through(5, 9, body=bodies), "test.toml")
    (slab,) = domain.split(case.shape, 1, False)
    (found,) = (e for e in build.build(case, slab).lists if e.boundary.name == "neumann")
    assert found.cells.tolist() == [0, 1, 2, 3, 4]
    assert [each.cells.tolist() for each in found.inward] == [[5, 1, 2, 8, 9], [10, 1, 2, 13, 14]]
    assert found.replaced == 4


def test_bodies_have_no_normal():
    ball = {"name": "sphere", "centre": [3, 3], "radius": 1}
    bodies = [{"shape": ball, "boundary": {"name": "copy"}}]
    with pytest.raises(CaseError, match="copy needs a face of the box"):
        parse_case(through(5, 9, body=bodies), "test.toml")

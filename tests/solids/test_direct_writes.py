"""Reflecting links give the same populations if written directly, in any order, or staged."""

import numpy as np
import pytest
from support.faces import closed
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.parallel import slabs
from mpilbm.solids import build, staging
from mpilbm.solids.box_walls import beyond
from mpilbm.solids.entry_list import Writes
from mpilbm.solver import boundary_lists

ORDERS = {
    "staged": lambda case, slab, found: list(found),
    "at once": staging.split_by_writes,
    "backwards": lambda case, slab, found: backwards(staging.split_by_writes(case, slab, found)),
}


def backwards(found):
    """The entries of each list, and the lists that are not staged, from the last to the first."""
    staged, rest = (
        [e for e in found if (e.writes is Writes.STAGED) == own] for own in (True, False)
    )
    turned = [each.only(np.arange(each.cells.size)[::-1]) for each in reversed(rest)]
    return staged + turned


def cavity(D, size, lid, other, **more):
    """Walls, two of which may be of other kinds, and a body that reaches through a face."""
    faces = [axis + side for axis in "xyz"[:D] for side in "-+" if axis + side not in (lid, *other)]
    velocity = [0.03 * (axis != lid[0]) for axis in "xyz"[:D]]
    walls = [{"name": "bounce_back", "where": [lid], "velocity": velocity}]
    walls += [{"name": "bounce_back", "where": faces}]
    walls += [{"name": name, "where": [face]} for face, name in other.items()]
    ball = {"name": "sphere", "centre": [0.8, *(n / 2 for n in size[1:])], "radius": 1.4}
    body = [{"label": "ball", "shape": ball, "boundary": {"name": "bounce_back"}}]
    u = [f"0.03*sin(2*x + {k} + y)" for k in range(D)]
    return closed(f"D{D}Q{more.pop('Q')}", size, walls, body=body, initial={"u": u}, **more)


def duct(name, *tables):
    """A cavity that is periodic along planes, where diagonal links leave rows, too."""
    box = cavity(*tables, Q=19)
    faces = [face for wall in box["boundary"] for face in wall["where"] if face[0] != "z"]
    box["domain"]["periodic"][2] = True
    ends = [wall | {"where": [w for w in wall["where"] if w in faces]} for wall in box["boundary"]]
    return name, box | {"boundary": [wall for wall in ends if wall["where"]]}


CASES = {
    "lid at z+": ("ab", cavity(3, [6, 4, 7], "z+", {}, Q=19)),
    "lid at x-": ("esopull", cavity(3, [5, 4, 6], "x-", {"y+": "full_way"}, Q=19)),
    "lid along a duct": duct("ab", 3, [6, 5, 4], "y+", {}),
    "duct with a full-way wall": duct("aa", 3, [5, 4, 3], "x-", {"y+": "full_way"}),
    "one plane": duct("esopull", 3, [6, 5, 1], "y+", {}),
    "one cell across": ("aa", cavity(2, [1, 7], "y+", {}, Q=9)),
    "odd staggered rows": ("aa", cavity(3, [6, 5, 6], "y-", {}, Q=13, collision={"name": "mrt"})),
}


@pytest.mark.parametrize("name", CASES)
def test_neither_order_nor_staging_shows(name, monkeypatch):
    layout, tables = CASES[name]
    found = {}
    for order, parted in ORDERS.items():
        monkeypatch.setattr(boundary_lists, "split_by_writes", parted)
        ranks = min(1 + (order == "at once"), tables["domain"]["size"][-1])
        cluster = Cluster(tables | {"layout": {"name": layout}}, ranks).start()
        found[order] = cluster.run(5).state()
        assert (order == "staged") != any(used(cluster))
    for state in found.values():
        assert np.isfinite(state).all()
        np.testing.assert_array_equal(state, found["staged"])


def used(cluster):
    """Entries that are not staged, by slab."""
    own = [solver.lists[0] for solver in cluster.solvers]
    return [each.count - each._staged for each in own]


@pytest.mark.parametrize("layout", ["ab", "esopull"])
def test_all_links_of_a_cavity_are_set_once(layout):
    """With a lid along planes nothing is staged, and an exchange stands for two links.

    With `ab` the links of walls at rest that leave the box along x are left to the step.
    """
    tables = cavity(3, [6, 4, 7], "z+", {}, Q=19) | {"layout": {"name": layout}}
    case = parse_case(tables, "test.toml")
    (slab,) = slabs.split(case.shape, 1, False)
    whole = build.build(case, slab).lists
    left = staging.split_by_writes(case, slab, whole)
    count = {
        writes: sum(each.links.total() for each in left if each.writes is writes)
        for writes in Writes
    }
    assert not count[Writes.STAGED]
    home = [(beyond(case, slab, e.cells) & e.links).total() for e in whole if e.boundary.reflects]
    home = sum(home) * (layout == "ab")
    assert (home > 100) == (layout == "ab")
    assert count[Writes.DIRECT] + 2 * count[Writes.EXCHANGED] + home == sum(
        each.links.total() for each in whole
    )
    assert count[Writes.EXCHANGED] > 50

"""Slabs of equal cost: the best cuts there are, and not a bit that depends on them."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from support.plane_costs import tables, typed
from support.slabs import Cluster, box

from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make, names
from mpilbm.parallel import slabs as domain
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight import plan
from mpilbm.run.progress import Say
from mpilbm.run.setup import build_solver
from mpilbm.solids import build, plane_costs


def cut(costs, ranks, least=(1, 1, 1)):
    slabs = split((len(costs), 4, 5), ranks, False, np.array(costs), least)
    assert [slab.begin for slab in slabs[1:]] == [slab.end for slab in slabs[:-1]]
    assert (slabs[0].begin, slabs[-1].end) == (0, len(costs))
    return [slab.planes for slab in slabs]


def dearest(costs, sizes):
    ends = np.cumsum([0, *sizes])
    return max(sum(costs[a:b]) for a, b in pairwise(ends))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("least", [(1, 1, 1), (2, 1, 3)])
def test_no_other_cuts_are_cheaper(ranks, least):
    random = np.random.default_rng(ranks)
    for planes in (7, 8, 11):
        costs = (random.integers(0, 5, planes) * random.integers(0, 9, planes)).tolist()
        found = cut(costs, ranks, least)
        assert min(found) >= 1
        every = [
            np.diff([0, *inner, planes]).tolist()
            for inner in combinations(range(1, planes), ranks - 1)
        ]
        fits = [s for s in every if ranks == 1 or (s[0] >= least[0] and s[-1] >= least[2])]
        if fits:
            assert found in fits
            assert dearest(costs, found) == min(dearest(costs, sizes) for sizes in fits)


@pytest.mark.parametrize("planes", [4, 13, 192])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_equal_costs_give_the_equal_cuts(planes, ranks):
    assert split((planes, 4, 5), ranks, True, np.full(planes, 7)) == split(
        (planes, 4, 5), ranks, True
    )


def test_shares_where_the_ends_need_more_planes_than_there_are():
    assert cut([1, 1, 9], 3, (2, 1, 2)) == [1, 1, 1]


LAYOUTS = [n for n in names("layouts") if make("layouts", n).populations]


@pytest.fixture
def cluster(monkeypatch):
    """A Cluster whose slabs are cut from costs."""

    def of(case, slabs, costs):
        monkeypatch.setattr(domain, "split", lambda *given: split(*given, costs))
        return Cluster(case, slabs)

    return of


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_bit_depends_on_the_cuts(cluster, layout, tmp_path):
    case = tables(tmp_path, {"name": layout})
    whole = Cluster(case).start().run(5)
    costs = np.random.default_rng(1).integers(1, 20, 17) ** 2
    for weights in (costs, np.arange(17) ** 3 + 1):
        parts = cluster(case, 4, weights).start().run(5)
        assert len({s.slab.planes for s in parts.solvers}) > 2
        assert np.array_equal(parts.state(), whole.state())
    half = cluster(case, 3, costs).start().run(2)
    again = cluster(case, 2, costs[::-1]).restore(half.state(), 2).run(3)
    assert np.array_equal(again.state(), whole.state())


@pytest.mark.parametrize("layout", names("layouts"))
@pytest.mark.parametrize("D", [2, 3])
def test_costs_of_parts_are_those_of_the_whole(layout, D, tmp_path):
    case = typed(tables(tmp_path, {"name": layout}, D))
    whole = plane_costs.plane_costs(case, 0, 17)
    parts = [plane_costs.plane_costs(case, *ends) for ends in ((0, 1), (1, 6), (6, 17))]
    assert np.array_equal(np.concatenate(parts), whole)
    assert whole.min() > 0


def test_fluid_cells_cost_where_they_alone_are_stored_and_links_in_dense_layouts(tmp_path):
    sparse, dense = (typed(tables(tmp_path, {"name": name})) for name in ("indirect", "ab"))
    free, rock = (slice(1, 7), slice(9, 16))
    costs = plane_costs.plane_costs(sparse, 0, 17)
    fluid = build.survey(sparse).fluid_cells
    assert costs[rock].mean() / costs[free].mean() == pytest.approx(
        fluid[rock].mean() / fluid[free].mean(), rel=0.01
    )
    costs = plane_costs.plane_costs(dense, 0, 17)
    assert (costs[free] == 8 * 6 * (2 * 19 * 4 + 1)).all()
    assert costs[rock].min() > costs[free].max()
    assert [slab.planes > 17 / 2 for slab in plane_costs.slabs(dense, 2, costs)] == [True, False]
    costs = plane_costs.plane_costs(sparse, 0, 17)
    assert [slab.planes > 17 / 2 for slab in plane_costs.slabs(sparse, 2, costs)] == [False, True]


@pytest.mark.parametrize("layout", names("layouts"))
def test_a_cell_costs_the_bytes_that_its_update_moves(layout, tmp_path):
    """Moments are read once, however many neighbours look at them."""
    case = typed(tables(tmp_path, {"name": layout}))
    solver, _ = build_solver(case, Serial(), Say(Serial()))
    assert plane_costs._cell_bytes(case) == pytest.approx(solver.bytes_per_update, abs=2)
    free = plane_costs.plane_costs(case, 1, 7)
    fluid = build.survey(case).fluid_cells[1:7] if layout == "indirect" else 8 * 6
    assert (free == fluid * plane_costs._cell_bytes(case) + 8 * 6).all()


@pytest.mark.parametrize(
    "lattice", [n for n in names("lattices") if not make("lattices", n).staggered]
)
def test_links_are_those_of_the_lists_in_a_periodic_box(lattice, tmp_path):
    D = make("lattices", lattice).D
    case = tables(tmp_path, {"name": "ab"}, D) | {"lattice": {"name": lattice}}
    case = typed(case)
    costs = plane_costs.plane_costs(case, 0, 17)
    cell = np.prod(case.shape[1:]) * (plane_costs._cell_bytes(case) + 1)
    assert (costs - cell).sum() == plane_costs.LINK_BYTES * sum(build.survey(case).body_links)


def test_a_box_without_bodies_keeps_equal_slabs():
    assert plane_costs.plane_costs(typed(box("D3Q19")), 0, 13) is None


def test_check_plans_the_slabs_that_a_run_has(tmp_path):
    case = typed(tables(tmp_path, {"name": "indirect"}))
    costs = plane_costs.plane_costs(case, 0, 17)
    planes = [slab.planes for slab in plane_costs.slabs(case, 3, costs)]
    (line,) = [one for one in plan.plan(case, 3).sections["ranks"] if one.what == "slabs"]
    assert line.verdict.startswith(f"{min(planes)} to {max(planes)} planes")


def test_slabs_at_faces_have_the_planes_that_their_boundaries_look_at(tmp_path):
    case = tables(tmp_path, {"name": "ab"}, filling=(0.9, 0.0))
    case["domain"]["periodic"][2] = False
    ends = [{"name": "copy", "where": ["z-"]}, {"name": "yu", "where": ["z+"], "rho": 1.0}]
    case["boundary"] = ends
    case = typed(case)
    costs = np.array([10**6] + [1] * 15 + [10**6])
    first, *_, last = plane_costs.slabs(case, 3, costs)
    assert (first.planes, 1, last.planes) == plane_costs.planes_needed(case)
    assert min(first.planes, last.planes) > 1


def test_slabs_have_the_planes_that_are_looked_at_along_links(tmp_path):
    case = tables(tmp_path, {"name": "ab"})
    case["body"][0]["boundary"] = {"name": "tamm_mott_smith"}
    costs = np.array([1] * 8 + [10**6] + [1] * 8)
    assert min(slab.planes for slab in plane_costs.slabs(typed(case), 4, costs)) == 4
    with pytest.raises(CaseError, match="each needs at least 2; start at most 8 ranks"):
        plane_costs.slabs(typed(case), 18)
    case["body"][0]["boundary"] = {"name": "bounce_back"}
    assert min(slab.planes for slab in plane_costs.slabs(typed(case), 4, costs)) == 1

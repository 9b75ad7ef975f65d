"""Fluid nodes alone: what the dense layouts hold in them, in every bit, and nothing else stored.

More than 20 s: each combination has two kernel texts.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support.addresses import names_of
from support.pairs import every_value, label
from support.rocks import tables
from support.settings import SETTINGS
from support.slabs import PRECISIONS, Cluster, box
from sympy import Symbol

from mpilbm.case.case import parse_case
from mpilbm.codegen import programs
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, make, names
from mpilbm.parallel import slabs as domain
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Capabilities, Reads
from mpilbm.run.preflight import rank_memory
from mpilbm.solids import build
from mpilbm.solids.box_walls import constant_velocity
from mpilbm.solver.context import unlisted

STREAMINGS = [
    n for n in names("layouts") if make("layouts", n).populations and n not in ("auto", "indirect")
]
TURNING = ("ab", "aa")  # outgoing populations return by the layout itself


def indirect(streaming: str) -> dict:
    return {"name": "indirect", "streaming": streaming}


LATTICES = [n for n in names("lattices") if not make("lattices", n).staggered]
OPTIONS = {
    "lattice": LATTICES,
    "streaming": STREAMINGS,
    "setting": list(SETTINGS),
    "precision": [name for name in PRECISIONS if name != "mixed_moments"],
    "moving": [False, True],
}


# Each lattice with each streaming: test_each_location_is_touched_by_one_node.
CHOICES = every_value(OPTIONS, lambda choice: True, ("streaming", "setting", "moving"))


@pytest.mark.parametrize("choice", CHOICES, ids=label)
def test_fluid_cells_are_those_of_a_dense_layout(choice, tmp_path):
    streaming = choice.pop("streaming")
    dense = Cluster(tables(tmp_path, layout={"name": "ab"}, **choice)).start()
    case = tables(tmp_path, layout=indirect(streaming), **choice)
    clusters = [Cluster(case, slabs).start() for slabs in (1, 2, 3, 4)]
    for steps in (0, 6, 1):
        state, sums = dense.run(steps).state(), dense.sums()[1]
        fields = dense.fields("rho", "u", "vorticity")
        assert np.isfinite(state).all()
        for cluster in clusters:
            assert np.array_equal(cluster.run(steps).state(), state)
        for cluster in clusters:
            # partial sums of a row are those of its fluid cells, not of places in the row
            np.testing.assert_allclose(cluster.sums()[1], sums, 1e-11, 1e-13)
            assert np.array_equal(cluster.sums()[1], clusters[0].sums()[1])
            for name, values in cluster.fields(*fields).items():
                assert np.array_equal(values, fields[name])


@pytest.mark.parametrize("streaming", STREAMINGS)
@pytest.mark.parametrize("steps", [3, 4])
def test_restart_from_and_to_a_dense_layout(streaming, steps, tmp_path):
    """What a dense layout holds in solids means nothing."""
    dense, sparse = (
        tables(tmp_path, "D3Q19", layout, "walls")
        for layout in ({"name": "ab"}, indirect(streaming))
    )
    whole = Cluster(dense).start().run(9).state()
    for first, second, slabs in ((dense, sparse, 3), (sparse, dense, 1), (sparse, sparse, 4)):
        before = Cluster(first, 2).start().run(steps)
        half = np.concatenate(before.each(lambda s: s.read_state("", 0, s.slab.planes)))
        solid = np.concatenate(before.each(lambda s: s.solid(0, s.slab.planes)))
        half[np.broadcast_to(solid[:, None], half.shape)] = 0.01
        after = Cluster(second, slabs).restore(half, steps).run(9 - steps)
        assert np.array_equal(after.state(), whole)


def slabs_of(case, ranks):
    for slab in domain.split(case.shape, ranks, case.domain.periodic[-1]):
        yield slab, build.build(case, slab)


def grid_of(case, slab, shape):
    return case.layout.grid(case.lattice, slab.planes, *slab.shape[1:], shape.around)


def tables_of(grid, shape):
    found = {name: np.zeros(count, np.int32) for name, count in grid.table_sizes.items()}
    for name, begin, values in grid.table_parts(shape):
        found[name][begin : begin + values.size] = values
    return found


@pytest.mark.parametrize("setting", ["periodic", "walls"])
@pytest.mark.parametrize("streaming", STREAMINGS)
@pytest.mark.parametrize("lattice", LATTICES)
def test_each_location_is_touched_by_one_node(lattice, streaming, setting, tmp_path):
    """Of all places that a step reads or writes, by the text of their addresses."""
    case = parse_case(tables(tmp_path, lattice, indirect(streaming), setting), "test.toml")
    layout = case.layout
    for slab, shape in (*slabs_of(case, 2), *slabs_of(case, 1)):
        grid = replace(grid_of(case, slab, shape), wraps=slab.wraps)
        known = names_of(grid) | tables_of(grid, shape)
        planes = range(grid.planes + 2 * grid.ghost)
        inside = range(*grid.interior) if slab.wraps else planes
        for parity, side in product(range(layout.parities), (layout.reads, layout.writes)):
            touched = []
            for place in side(case.lattice, parity):
                text = compile(grid.address(*place), "address", "eval")
                for plane in range(*grid.interior):
                    node = np.arange(grid.count_of[plane])
                    touched.append(eval(text, known | {"plane": plane, "node": node}))
            touched = np.concatenate(touched)
            assert touched.size == case.lattice.Q * shape.fluid_cells.sum()
            assert np.unique(touched).size == touched.size
            assert touched.min() >= grid.piece(inside[0], 0, 0)[0]
            assert touched.max() < sum(grid.piece(inside[-1], 0, len(grid.slots)))


@pytest.mark.parametrize("streaming", STREAMINGS)
def test_walls_at_rest_need_lists_only_where_other_slabs_write(streaming, tmp_path):
    case = parse_case(tables(tmp_path, "D3Q19", indirect(streaming), "walls"), "test.toml")
    ((slab, shape),) = slabs_of(case, 1)
    left = unlisted(grid_of(case, slab, shape), shape.lists, case.lattice)
    moving = [each for each in shape.lists if not each.boundary.reflects]
    assert [e for e in left if not e.boundary.reflects] == moving != []
    still = [each for each in left if each.boundary.reflects]
    whole = [each for each in shape.lists if each.boundary.reflects]
    if streaming not in TURNING:
        assert still == whole
        return
    plane = np.prod(case.shape[1:])
    for each in still:
        assert set(np.unique(each.cells // plane)) <= {0, case.shape[0] - 1}
        assert each.links.any().all()
    for i, edge in product(range(case.lattice.Q), (0, case.shape[0] - 1)):
        beyond = not 0 <= edge - case.lattice.offset(i)[0] < case.shape[0]
        listed = [sum(e.links.has(i)[e.cells // plane == edge].sum() for e in lists)
                  for lists in (still, whole)]  # fmt: skip
        assert listed[0] == (listed[1] if beyond else 0)


class Cell:
    """The cell that a boundary gets, with symbols as values."""

    def __init__(self, lattice, values):
        self.lattice, self.values = lattice, {name: Symbol(name) for name in values}
        self.left = [Symbol(f"left_{i}") for i in range(lattice.Q)]
        self.density, self.rho, self.u = Symbol("density"), Symbol("rho"), [0] * lattice.D

    def stored(self, rho):
        return rho

    def at_wall(self, i, expression):
        return expression

    def feq(self, density, rho, u):
        return [Symbol(f"feq_{i}") + sum(u) for i in range(self.lattice.Q)]


BOUNDARIES = [
    {"name": "bounce_back"},
    {"name": "bounce_back", "velocity": (0.1, 0.0)},
    {"name": "equilibrium", "velocity": (0.1, 0.0)},
    {"name": "equilibrium", "rho": 1.0},
]


@pytest.mark.parametrize("table", BOUNDARIES, ids=str)
def test_a_boundary_declares_whether_it_returns_outgoing_populations(table):
    boundary, lattice = make("boundaries", table), make("lattices", "D2Q9")
    cell = Cell(lattice, boundary.values())
    back = {i: cell.left[lattice.opp[i]] for i in range(1, lattice.Q)}
    assert boundary.reflects == (boundary.incoming(cell) == back)


def test_every_boundary_that_may_return_is_looked_at():
    boundaries = {name: find("boundaries", name) for name in names("boundaries")}
    some = {name for name, each in boundaries.items() if each.declares.reads is Reads.SAME_LINK}
    assert some <= {table["name"] for table in BOUNDARIES}


def test_a_boundary_that_returns_a_part_is_no_half_way_wall():
    """It reads the same population as bounce-back, and its own `incoming` must be used."""

    class Absorbing(Boundary):
        declares = Capabilities(reads=Reads.SAME_LINK)

        @property
        def wall_velocity(self):
            return 0.1, 0.0

        def incoming(self, cell):
            return {i: cell.left[cell.lattice.opp[i]] / 2 for i in range(1, cell.lattice.Q)}

    wall = Absorbing(where=["y-"])
    assert not wall.reflects
    assert constant_velocity(wall) is None


@pytest.mark.parametrize("streaming", STREAMINGS)
def test_memory_follows_the_fluid(streaming, tmp_path):
    """A tube of 1/16 of a box takes at most a tenth of what the whole box takes."""
    solid = np.ones((40, 64, 64), bool)
    solid[:, 24:40, 24:40] = False
    np.save(tmp_path / "tube.npy", solid)
    body = {
        "label": "tube",
        "mask": str(tmp_path / "tube.npy"),
        "boundary": {"name": "bounce_back"},
    }
    found = []
    for bodies in ([body], []):
        case = box("D3Q19", [64, 64, 40], layout=indirect(streaming), body=bodies)
        case = parse_case(case, "test.toml")
        ((slab, shape),) = slabs_of(case, 1)
        grid = grid_of(case, slab, shape)
        arrays = (grid.arguments() | tables_of(grid, shape)).values()
        tables_bytes = sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        assert tables_bytes == grid.table_bytes
        survey = build.survey(case)
        assert rank_memory.around(slab, survey, case.ghost).tolist() == shape.around.tolist()
        more = np.zeros((case.shape[0], 3), np.int64)  # without the arrays of boundaries
        needs = rank_memory.memory(case, slab, survey, more, on_host=False)
        assert needs["populations"] == case.layout.buffers * 4 * grid.count
        assert needs["neighbours"] == grid.table_bytes
        found.append(needs["populations"] + needs["neighbours"])
    assert found[0] < found[1] / 10


def test_sums_and_flags_are_made_when_asked_for(tmp_path):
    cluster = Cluster(tables(tmp_path, "D3Q19", indirect("aa"))).start().run(2)
    cluster.state(), cluster.fields("rho", "u")
    (solver,) = cluster.solvers
    assert "flags" not in vars(solver)
    assert "velocity" not in vars(solver.diagnostics)


def test_bytes_of_an_update_count_the_tables():
    found = {}
    for streaming in STREAMINGS:
        cluster = Cluster(box("D3Q19", layout=indirect(streaming)))
        found[streaming] = cluster.solvers[0].bytes_per_update
    assert found == {"ab": 152 + 72, "aa": 152 + 36, "esopull": 152 + 36}


def test_a_streaming_that_is_none_is_refused():
    with pytest.raises(
        CaseError, match="'moments' is not a layout of populations; allowed: aa, ab, esopull"
    ):
        parse_case(box("D2Q9", layout=indirect("moments")), "test.toml")


def test_text_of_a_step_over_nodes_reads_tables():
    """Even steps of aa access their own cell only; odd ones access 18 neighbours."""
    program = programs.build(parse_case(box("D3Q19", layout=indirect("aa")), "test.toml"))
    even, odd = (program.kernels[f"collide_stream_{k}"] for k in (0, 1))
    tables_read = [sum(a.buffer == "node_next" for a in k.reads) for k in (even, odd)]
    assert tables_read == [0, 18]

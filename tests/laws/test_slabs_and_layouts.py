"""N slabs = 1 slab, bit for bit, in every layout, model and precision; restart likewise.

Minutes of CPU time: each pair of names is a case with two kernel texts of its own.
"""

from itertools import product

import numpy as np
import pytest
from support.equations import Numbers
from support.pairs import cover, label
from support.settings import LAW_CASES, MODELS, OPTIONS, tables, with_model
from support.slabs import Cluster

from mpilbm.codegen.model import Model
from mpilbm.layouts.formats import SCALE

ROUNDING = {"half": 3e-5, "single": 2e-8, "mixed": 1e-8, "double": 3e-16}  # in a step
ALLOWED = {"half": 3e-4, "mixed_moments": 3e-5, "double": 1e-14}  # of rho and u after some steps


def assert_obeys_the_equations(ab, before, after, precision):
    """In cells with fluid neighbours only: the new populations equal the equations in double."""
    case, unit = ab.case, SCALE if precision == "half" else 1
    one, lattice = case.fluids[0], case.lattice
    model = Model(lattice, one.collision, one.force, case.precision.offset)
    push = getattr(one.force, "value", ())
    kernel = Numbers(**{f"force_{a}": F for a, F in zip("xyz", push, strict=False)})
    rates = one.collision.rates(one.viscosity, lattice)
    fluid = ~np.concatenate(ab.each(lambda s: s.solid(0, s.slab.planes)))
    inside = [range(1, n - 1) if n > 1 else [0] for n in fluid.shape]
    around = (upstream(lattice, cell) for cell in product(*inside))
    open_ = [places for places in around if all(fluid[place] for place in places)]
    for places in open_[:: len(open_) // 3]:
        f = [float(before[p, i, row, k]) / unit for i, (p, row, k) in enumerate(places)]
        expected = np.array(model.collide(kernel, f, rates), float)
        plane, row, k = places[0]
        found = after[plane, :, row, k] / unit
        assert np.abs(found - expected).max() < ROUNDING[precision]


def upstream(lattice, cell) -> list:
    """(plane, row, place in the row) of the cells that what arrives in a cell comes from."""
    plane, row, k = cell
    from_ = np.array([plane, row, lattice.x(plane, row, k)])
    places = [from_ - lattice.offset(i) for i in range(lattice.Q)]
    return [(p, row, x // 2 if lattice.staggered else x) for p, row, x in places]


@pytest.mark.parametrize("choice", LAW_CASES, ids=label)
def test_neither_slabs_nor_layout_show(choice):
    """After an even and an odd number of steps all layouts hold what `ab` holds.

    `ab` has no mixed storage of moments; it is compared in float32."""
    whole = Cluster(tables(**choice)).start()
    precision = {"mixed_moments": "single"}.get(choice["precision"], choice["precision"])
    ab = Cluster(tables(**choice | {"layout": "ab", "precision": precision})).start()
    for steps in (6, 1):
        before = ab.state()
        state, expected = whole.run(steps).state(), ab.run(steps).state()
        fields = whole.fields("rho", "u", "vorticity", "q_criterion")
        if whole.case.layout.populations:
            assert np.array_equal(state, expected)
        for name, values in ab.fields("rho", "u").items():
            assert np.abs(fields[name] - values).max() < ALLOWED.get(choice["precision"], 3e-6)
    assert_obeys_the_equations(ab, before, expected, precision)
    columns, sums = whole.sums()
    assert np.isfinite(state).all()
    assert np.any(state != state[:1])
    for slabs in (2, 3, 9):
        cut = Cluster(tables(**choice), slabs).start().run(7)
        assert np.array_equal(cut.state(), state)
        for name, values in cut.fields(*fields).items():
            assert np.array_equal(values, fields[name])
        assert cut.sums()[0] == columns
        assert np.array_equal(cut.sums()[1], sums)


PAIRS = [{"force": force, "equilibrium": equilibrium} for force, equilibrium in MODELS]
STORED = [
    {"layout": layout, "precision": precision} | model
    for layout, precision, models in (
        ("moments", "double", PAIRS),
        ("aa", "half", cover(PAIRS, ())),
    )
    for model in models
]


@pytest.mark.parametrize("choice", STORED, ids=label)
def test_every_force_and_equilibrium_in_every_storage(choice):
    """Moments store each pair of them; 16 bits store each of them once."""
    given = {"lattice": "D2Q9", "collision": "regularized"} | choice
    found, expected = (
        Cluster(with_model(**each)).start().run(7).fields("rho", "u")
        for each in (given, given | {"layout": "ab", "precision": "double"})
    )
    for name, values in expected.items():
        allowed = {"half": 3e-4, "double": 1e-14}[choice["precision"]]
        assert np.abs(found[name] - values).max() < allowed


@pytest.mark.parametrize("setting", ["periodic", "walls"])
@pytest.mark.parametrize("layout", OPTIONS["layout"])
def test_slabs_of_few_planes(layout, setting):
    lattice, size = ("D2Q9", [5]) if setting == "periodic" else ("D3Q19", [5, 4])
    case = tables(lattice, layout, "regularized", setting, "single")
    case.pop("body", None)
    for planes in (1, 2, 3):
        case["domain"]["size"] = [*size, planes]
        whole = Cluster(case).start().run(6).state()
        assert np.isfinite(whole).all()
        for slabs in range(2, planes + 1):
            assert np.array_equal(Cluster(case, slabs).start().run(6).state(), whole)


@pytest.mark.parametrize("setting", ["periodic", "walls"])
@pytest.mark.parametrize("layout", OPTIONS["layout"])
def test_planes_wrap_around_in_one_launch(layout, setting):
    """A slab that has all planes of a periodic axis neither uses nor exchanges ghost planes."""
    case = tables("D2Q9", layout, "regularized", setting, "single")
    if setting == "walls":
        case["body"][0]["shape"]["centre"][1] = 0.3
        case["domain"]["periodic"] = [False, True]
        walls = [(wall, [w for w in wall["where"] if w[0] != "y"]) for wall in case["boundary"]]
        case["boundary"] = [wall | {"where": where} for wall, where in walls if where]
    expected, cluster = Cluster(case).start().run(7), Cluster(case).start()
    (solver,) = cluster.solvers
    for f in solver.fluids[0].f:
        inside = slice(*(solver.grid.piece(plane, 0, 0)[0] for plane in solver.grid.interior))
        kept = f[inside].copy()
        f[:] = np.nan
        f[inside] = kept
    calls = counted(solver)
    assert np.array_equal(cluster.run(7).state(), expected.state())
    assert set(calls) == {solver.grid.interior}
    assert len(calls) == 7
    for name, values in expected.fields("rho", "u", "vorticity").items():
        assert np.array_equal(cluster.fields(name)[name], values)


def counted(solver) -> list:
    """The planes of all launches of collide-stream kernels from now on."""
    calls = []

    def counting(launch):
        return lambda stream, *planes: calls.append(planes[:2]) or launch(stream, *planes)

    for one in (each for passes in solver.streaming for each in passes):
        one.launch = counting(one.launch)
    return calls


@pytest.mark.parametrize("steps", [3, 4])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ab", "aa"),
        ("aa", "esopull"),
        ("esopull", "indirect"),
        ("indirect", "ab"),
        ("moments", "moments"),
    ],
)
@pytest.mark.parametrize("slabs", [(1, 3), (3, 2), (4, 1)])
def test_restart_does_not_show(before, after, slabs, steps):
    first = tables("D3Q19", before, "regularized", "walls", "single")
    second = tables("D3Q19", after, "regularized", "walls", "single")
    whole = Cluster(first).start().run(9).state()
    half = Cluster(first, slabs[0]).start().run(steps).state()
    resumed = Cluster(second, slabs[1]).restore(half, steps).run(9 - steps).state()
    assert np.array_equal(resumed, whole)

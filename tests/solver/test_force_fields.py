"""Forces that are given for each cell: the same in all layouts and slabs, and at the right time.

More than 20 s: constants, formulas, arrays and functions of time have kernel texts of their own.
"""

from functools import partial

import h5py
import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.faces import closed
from support.sampled_flows import means, sampled, with_statistics
from support.slabs import PRECISIONS, Cluster, box
from support.walls import rocks

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import names

LAYOUTS = [name for name in names("layouts") if name != "auto"]
SIZES = {"D2Q9": (7, 6), "D3Q19": (5, 4, 7), "D3Q13": (6, 4, 4)}


def forced(lattice: str, value, layout: str = "ab", **more) -> dict:
    collision = {"D3Q13": "mrt"}.get(lattice, "regularized")
    more = {"precision": PRECISIONS["double"], "collision": {"name": collision}} | more
    force = {"name": "guo", "value": value}
    return box(lattice, SIZES[lattice], layout={"name": layout}, force=force, **more)


def columns(cluster: Cluster) -> np.ndarray:
    """What each cell has: populations, density and velocity."""
    fields = cluster.fields("rho", "u")
    parts = [cluster.state().reshape(-1), fields["rho"].reshape(-1), fields["u"].reshape(-1)]
    return np.concatenate([*parts, cluster.sums()[1].reshape(-1)])


@pytest.mark.parametrize(
    ("lattice", "layout"),
    [*(("D2Q9", layout) for layout in LAYOUTS), ("D3Q19", "aa"), ("D3Q19", "indirect")],
)
def test_a_constant_array_is_a_uniform_force(lattice, layout):
    push = np.array([1e-4, -2e-4, 3e-4][: len(SIZES[lattice])])
    array = np.ones((*SIZES[lattice][::-1], 1)) * push
    one = Cluster(forced(lattice, push.tolist(), layout)).start().run(5)
    for slabs in (1, 2):
        cells = Cluster(forced(lattice, array, layout), slabs).start().run(5)
        assert np.array_equal(columns(cells), columns(one))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_is_in_each_cell_the_formula_there(layout):
    """In float64 NumPy and the kernel compute these products with the same bits."""
    nx, ny = SIZES["D2Q9"]
    y, x = np.mgrid[:ny, :nx] + 0.5
    array = np.stack([1e-4 * x * y, 2e-4 * x - 1e-4 * y], axis=-1)
    formulas = ["1e-4*x*y", "2e-4*x - 1e-4*y"]
    expected = columns(Cluster(forced("D2Q9", formulas, layout)).start().run(5))
    mixed = [array[..., 0], formulas[1]], [formulas[0], array[..., 1]]
    for value in (array, mixed[LAYOUTS.index(layout) % 2]):
        found = columns(Cluster(forced("D2Q9", value, layout), 3).start().run(5))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_a_staggered_lattice_takes_its_own_cells():
    nx, ny, nz = SIZES["D3Q13"]
    z, y, x = np.mgrid[:nz, :ny, :nx] + 0.5
    array = np.stack([1e-4 * x, 1e-4 * y * z, 0 * z], axis=-1)
    expected = columns(Cluster(forced("D3Q13", ["1e-4*x", "1e-4*y*z", 0.0])).start().run(4))
    found = columns(Cluster(forced("D3Q13", array), 2).start().run(4))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def in_time(x, y, t):
    """No formula: `float` needs a number."""
    return 1e-4 * np.cos(float(t) / 3) * x, 1e-4 * np.sin(float(t) / 3) + 0 * y


FORMULAS = ["1e-4*cos(t/3)*x", "1e-4*sin(t/3)"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_function_of_time_is_used_when_a_formula_is(layout):
    """Also at walls and outlets, which use the force before the step, and in outputs."""
    ends = [
        {"name": "bounce_back", "where": ["x-", "x+"]},
        {"name": "regularized", "where": ["y-"], "velocity": [0.0, 0.02]},
        {"name": "zou_he", "where": ["y+"], "rho": 1.0},
    ]

    def flow(value):
        force, more = {"name": "guo", "value": value}, {"precision": PRECISIONS["double"]}
        return closed("D2Q9", [6, 9], ends, force=force, layout={"name": layout}, **more)

    expected = Cluster(flow(FORMULAS)).start().run(7)
    for slabs in (1, 2):
        found = Cluster(flow(in_time), slabs).start().run(7)
        np.testing.assert_allclose(columns(found), columns(expected), rtol=0, atol=2e-15)
    half = Cluster(flow(in_time), 3).start().run(4).state()
    later = Cluster(flow(in_time), 2).restore(half, 4)
    np.testing.assert_allclose(
        later.fields("u")["u"],
        Cluster(flow(FORMULAS)).start().run(4).fields("u")["u"],
        rtol=0,
        atol=2e-15,
    )
    assert np.array_equal(later.run(3).state(), found.state())


def test_an_oscillating_force_moves_the_fluid_by_its_integral():
    """rho du/dt = F(t): the trapezoidal rule, exactly; F rotates once in 40 steps."""
    force, turn = 1e-4, 2 * np.pi / 40

    def rotating(x, y, t):
        angle = turn * float(t)
        return force * np.cos(angle) + 0 * x, force * np.sin(angle) + 0 * y

    tables = forced("D2Q9", rotating, initial={"rho": 1, "u": [0.0, 0.0]})
    for steps in (1, 10, 40):
        t = np.arange(steps + 1)
        exact = [np.trapezoid(force * way(turn * t)) for way in (np.cos, np.sin)]
        u = Cluster(tables).start().run(steps).fields("u")["u"]
        assert np.abs(u - exact).max() < 1e-15


@pytest.mark.parametrize(
    ("layout", "wall"),
    [
        ("ab", "bounce_back"),
        ("aa", "bounce_back"),
        ("ab", "tamm_mott_smith"),
        ("indirect", "tamm_mott_smith"),
        ("aa", "interpolated"),
        ("indirect", "interpolated"),
    ],
)
def test_bodies_across_slabs_have_it_beside_them(layout, wall):
    """Some walls use the velocity of neighbours, which are also ghost cells."""
    tables = rocks({"name": layout}, {"name": wall})
    nx, ny = tables["domain"]["size"]
    force = {"name": "guo", "value": [1e-4, 2e-4]}
    one = Cluster(tables | {"force": force}).start().run(4)
    force = {"name": "guo", "value": np.full((ny, nx, 2), [1e-4, 2e-4])}
    for slabs in (1, 3):
        found = Cluster(tables | {"force": force}, slabs).start().run(4)
        assert np.array_equal(columns(found), columns(one))


def test_samples_and_changes_of_the_flow_have_it():
    """Kernels of statistics and of `run.steady`, in cells and in nodes."""
    more = {"run": {"steps": 9, "steady": {"every": 2, "tolerance": 1e-9}}}
    push, found = [1e-3, -2e-3], []
    for value in (push, np.full((6, 7, 2), push)):
        for layout in ("aa", "indirect"):
            cluster = Cluster(with_statistics(forced("D2Q9", value, layout, **more))).start()
            (kept,) = sampled(cluster, "cells")
            found.append(means(cluster.solvers[0], kept))
            cluster.solvers[0].start_change()()
            cluster.run(2)
            found[-1]["change"] = cluster.solvers[0].start_change()()
    for one, other in ((found[0], found[2]), (found[1], found[3])):
        assert all(np.array_equal(one[name], other[name]) for name in one)
        assert np.abs(one["change"]).max() > 0


def test_files_are_read_in_planes(tmp_path, monkeypatch):
    parse = lambda tables, _: parse_case(tables, tmp_path / "case.toml")  # noqa: E731
    monkeypatch.setattr("support.slabs.parse_case", parse)
    array = np.random.default_rng(1).normal(0, 1e-4, (6, 7, 2))
    np.save(tmp_path / "force.npy", array)
    expected = columns(Cluster(forced("D2Q9", array)).start().run(3))
    with h5py.File(tmp_path / "force.h5", "w") as file:
        file["push"] = array
    for name in ("force.npy", "force.h5:push"):
        found = columns(Cluster(forced("D2Q9", name), 2).start().run(3))
        assert np.array_equal(found, expected)
    wrong = {"force.h5:pull": "no dataset 'pull'", "force.h5:push": "has shape"}
    for name, problem in wrong.items():
        tables = forced("D2Q9", name) | {"domain": {"size": [6, 7]}}
        with pytest.raises(CaseError, match=f"force.value: '{name}' .*{problem}"):
            parse_case(tables, tmp_path / "case.toml")


@pytest.mark.skipif(command() is None, reason="no C++ compiler")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gpus_read_it(layout):
    """Single precision: one cell for each thread."""
    array = np.random.default_rng(2).normal(0, 1e-4, (6, 7, 2))
    tables = forced("D2Q9", array, layout, precision=PRECISIONS["single"])
    cpu = Cluster(tables).start().run(3)
    gpu = Cluster(tables, 2, partial(EmulatedDevice)).start().run(3)
    assert np.array_equal(columns(gpu)[: cpu.state().size], columns(cpu)[: cpu.state().size])

"""Laws of scalars: slabs and layouts do not show, the scalar is conserved, waves decay."""

from itertools import product

import numpy as np
import pytest
from support.scalars import carried, closed, flow, scalar_state, setting
from support.slabs import Cluster

from mpilbm.core.errors import CaseError

LAYOUTS = ("ab", "aa", "esopull")
CHOICES = [
    ("D2Q9", "trt", "aa", "periodic", "single", "D2Q5"),
    ("D2Q9", "bgk", "esopull", "buoyant", "half", "D2Q9"),
    ("D2Q9", "central_moment", "ab", "walls", "double", "D2Q5"),
    ("D2Q9", "mrt", "aa", "body", "single", "D2Q9"),
    ("D3Q19", "regularized", "esopull", "walls", "single", "D3Q7"),
    ("D3Q19", "trt", "aa", "body", "double", "D3Q7"),
    ("D3Q15", "bgk", "ab", "buoyant", "mixed", "D3Q19"),
    ("D3Q27", "cumulant", "ab", "body", "half", "D3Q15"),
    ("D2Q9", "entropic", "ab", "walls", "double", "D2Q5"),
    ("D2Q9", "kbc", "esopull", "buoyant", "double", "D2Q5"),
    ("D2Q9", "recursive_regularized", "aa", "body", "single", "D2Q5"),
]


def chosen(lattice, collision, layout, name, precision, of_scalar) -> dict:
    tables = flow(lattice, layout, precision, **setting(name, int(lattice[1])))
    tables["scalar"] = [each | {"lattice": of_scalar} for each in tables["scalar"]]
    return tables | {"collision": {"name": collision}}


@pytest.mark.parametrize("choice", CHOICES, ids="-".join)
def test_neither_slabs_nor_layout_show(choice):
    lattice, collision, _, *rest = choice
    whole, ab = Cluster(chosen(*choice)).start(), Cluster(chosen(lattice, collision, "ab", *rest))
    ab.start()
    for steps in (6, 1):
        state, f = scalar_state(whole.run(steps)), whole.state()
        assert np.array_equal(state, scalar_state(ab.run(steps)))
        assert np.array_equal(f, ab.state())
    fields = whole.fields("T", "u", "rho")
    assert np.isfinite(state).all()
    assert fields["T"].std() > 0.01
    for slabs in (2, 3):
        cut = Cluster(chosen(*choice), slabs).start().run(7)
        assert np.array_equal(scalar_state(cut), state)
        assert np.array_equal(cut.state(), f)
        for name, values in cut.fields(*fields).items():
            assert np.array_equal(values, fields[name])


@pytest.mark.parametrize(("layout", "of_scalar"), list(product(LAYOUTS, ("D2Q5", "D2Q9"))))
def test_a_closed_box_keeps_the_scalar(layout, of_scalar):
    """Adiabatic walls and bodies, in a flow; to rounding in double precision."""
    ball = {"shape": {"name": "sphere", "centre": [4, 4.5], "radius": 1.6},
            "boundary": {"name": "bounce_back"}}  # fmt: skip
    tables = flow("D2Q9", layout, scalars=[carried(lattice=of_scalar)], body=[ball], **closed(2))
    cluster = Cluster(tables).start()
    before = scalar_state(cluster).sum()
    moved = scalar_state(cluster.run(51))
    assert abs(moved.sum() - before) < 1e-12 * before
    assert cluster.fields("T")["T"].std() > 1e-3


def wave(N: int, u=0.0, of_scalar="D2Q5", diffusivity=0.01, **more) -> dict:
    """A diffusion wave along x in a uniform flow."""
    value = {"value": f"1 + 0.1*cos(2*pi*x/{N})"}
    scalar = carried(diffusivity=diffusivity, lattice=of_scalar, initial=value, **more)
    initial = {"u": [u, 0.0]}
    return flow(scalars=[scalar], domain={"size": [N, 2], "periodic": [True, True]},
                initial=initial)  # fmt: skip


def amplitude(cluster: Cluster) -> float:
    """The modulus of the first Fourier component of T along x."""
    T = cluster.fields("T")["T"][0, 0]
    return abs(np.fft.rfft(T)[1]) * 2 / T.size


@pytest.mark.parametrize("of_scalar", ["D2Q5", "D2Q9"])
def test_waves_decay_at_the_rate_of_diffusion(of_scalar):
    """The error of the rate is of second order in the size of the cells."""
    errors = []
    for N in (16, 32):
        D, steps = 0.05, 2 * N * N // 16
        cluster = Cluster(wave(N, 0, of_scalar, D)).start()
        start = amplitude(cluster.run(steps))
        rate = -np.log(amplitude(cluster.run(steps)) / start) / steps
        errors.append(abs(rate / (D * (2 * np.pi / N) ** 2) - 1))
    assert errors[1] < 0.005
    assert errors[0] / errors[1] > 3.5


def test_a_source_adds_and_a_reaction_decays():
    """dT/dt = S with S = 1e-3 sin(0.1 t), and dT/dt = -k T, in a fluid at rest."""
    still = {"value": 1.0}
    scalars = [
        carried("a", source="0.001*sin(0.1*t)", initial=still),
        carried("b", source="-0.01*b", initial=still),
        carried("c", source="0.01*b", initial={"value": 0.0}),
    ]
    cluster = Cluster(flow(scalars=scalars, initial={})).start().run(100)
    a, b, c = (cluster.fields(name)[name] for name in "abc")
    assert abs(a - (1 + 0.01 * (1 - np.cos(10)))).max() < 2e-5
    assert abs(b - np.exp(-1)).max() < 2e-5
    assert abs(b + c - 1).max() < 1e-12


def steady(ends: list, N=12, **more) -> np.ndarray:
    """T along y between two walls, after a long time, with D = 0.1."""
    tables = {
        "domain": {"size": [2, N], "periodic": [True, False]},
        "boundary": [{"name": "bounce_back", "where": ["y-", "y+"]}],
        "initial": {},
    }
    scalar = carried(diffusivity=0.1, boundary=ends, initial={"value": 0.3}, **more)
    cluster = Cluster(flow(scalars=[scalar], **tables)).start().run(600 * N)
    return cluster.fields("T")["T"][:, 0, 0]


@pytest.mark.parametrize("of_scalar", ["D2Q5", "D2Q9"])
def test_steady_conduction_is_linear_between_walls(of_scalar):
    """A given value, a given flux j, and h (ambient - T): exact for a linear profile."""
    y, flux, h = np.arange(12) + 0.5, 0.002, 0.03
    cold = {"name": "value", "where": ["y-"], "value": 0.2}
    warm = {"name": "flux", "where": ["y+"], "flux": flux}
    found = steady([cold, warm], lattice=of_scalar)
    np.testing.assert_allclose(found, 0.2 + flux / 0.1 * y, atol=2e-6)
    open_ = {"name": "robin", "where": ["y+"], "h": h, "ambient": 1.0}
    found = steady([cold, open_], lattice=of_scalar)
    slope = 0.8 / (12 + 0.1 / h)
    np.testing.assert_allclose(found, 0.2 + slope * y, atol=2e-6)


def test_a_step_leaves_through_an_outflow():
    """A front that the flow carries passes the face without a trace."""
    ends = [{"name": "value", "where": ["x-"], "value": 1.0}, {"name": "outflow", "where": ["x+"]}]
    faces = [{"name": "equilibrium", "where": ["x-"], "velocity": [0.1, 0]},
             {"name": "equilibrium", "where": ["x+"], "rho": 1.0}]  # fmt: skip
    tables = flow(
        scalars=[carried(diffusivity=0.02, boundary=ends, initial={"value": 0.0})],
        domain={"size": [24, 3], "periodic": [False, True]},
        boundary=faces,
        initial={"u": [0.1, 0]},
    )
    cluster = Cluster(tables).start().run(150)
    middle = cluster.fields("T")["T"][1, 0]
    assert middle[2] > 0.9 > 0.1 > middle[-1]
    assert np.abs(cluster.run(700).fields("T")["T"] - 1).max() < 1e-3


def test_warm_fluid_rises():
    """With a positive beta and gravity downwards."""
    spot = {"value": "exp(-((x-8)**2 + (y-8)**2)/8)"}
    buoyancy = {"gravity": [0, -1e-3], "T": {"beta": 1.0}}
    tables = flow(scalars=[carried(initial=spot)], buoyancy=buoyancy, initial={},
                  domain={"size": [16, 16], "periodic": [True, True]})  # fmt: skip
    u = Cluster(tables).start().run(20).fields("u")["u"]
    assert u[7, 0, 7, 1] > 1e-3
    assert np.allclose(u[7, 0, 7, 0], -u[7, 0, 8, 0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_restart_does_not_show(layout):
    tables = flow("D2Q9", layout, "single", **setting("body", 2))
    whole = Cluster(tables).start().run(6)
    state, g = (
        next(s.read_state(label, 0, s.slab.planes) for s in whole.solvers) for label in ("", "T")
    )
    again = Cluster(tables).start()
    (solver,) = again.solvers
    solver.write_state("", 0, state, 6)
    solver.write_state("T", 0, g, 6)
    solver.resume(6)
    assert np.array_equal(scalar_state(again.run(5)), scalar_state(whole.run(5)))
    assert np.array_equal(again.state(), whole.state())


def test_a_face_that_fluid_passes_is_open_for_the_scalar():
    """Otherwise the scalar would pile up there."""
    faces = [{"name": "equilibrium", "where": ["x-"], "velocity": [0.1, 0]},
             {"name": "equilibrium", "where": ["x+"], "rho": 1.0}]  # fmt: skip
    inlet = {"name": "value", "where": ["x-"], "value": 1.0}
    tables = flow(scalars=[carried(boundary=[inlet])], boundary=faces,
                  domain={"size": [8, 3], "periodic": [False, True]})  # fmt: skip
    with pytest.raises(
        CaseError, match=r"scalar.T.boundary: fluid passes the face 'x\+', which is"
    ):
        Cluster(tables)

"""Turbulence at an inlet: its statistics, the flow rate, the same bits for all slabs, mistakes."""

import numpy as np
import pytest
from support.faces import closed, table
from support.findings import warnings_of
from support.slabs import Cluster, assert_same

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError

SIZE, U, LENGTH = [6, 20, 24], 0.08, 2.5
STRESSES = [1e-4, 4e-5, 6e-5, -3e-5, 1e-5, 2e-5]  # uu, vv, ww, uv, uw, vw
REYNOLDS = {"stresses": STRESSES, "length": LENGTH, "length_along": 4.0, "seed": 7}
WEAK = {"intensity": 0.1, "length": LENGTH}
SOLID = {"name": "box", "lower": [-9, -9, -9], "upper": [99, 99, 99]}
BORE = {"name": "cylinder", "centre": [0, 10, 12], "radius": 9, "axis": "x"}
PIPE = {
    "label": "pipe",
    "shape": {"name": "difference", "of": [SOLID, BORE]},
    "boundary": {"name": "bounce_back"},
}


def stream(turbulence, name="regularized", layout="ab", periodic=False, **more) -> dict:
    """A box with an inlet at x- and an outlet, between walls."""
    inlet = more.pop("inlet", {})
    ends = [
        {"name": name, "where": ["x-"], "velocity": [U, 0.0, 0.0], "turbulence": turbulence}
        | inlet,
        {"name": "copy", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", "y+", D=3),
        *([] if periodic else [table("bounce_back", "z-", "z+", D=3)]),
    ]
    more = {"initial": {"rho": 1, "u": [0.0, 0.0, 0.0]}, "layout": {"name": layout}} | more
    tables = closed("D3Q19", SIZE, ends, **more)
    tables["domain"]["periodic"] = [False, False, periodic]
    return tables


def fluctuations(tables: dict, times, face="x-") -> np.ndarray:
    """u' on the face, (times, 3, slow, fast), as the boundary lists receive it."""
    (inlet,) = (b for b in parse_case(tables, "test.toml").boundaries if face in b.where)
    axes = [a for a in range(3) if a != "xyz".index(face[0])]
    fast, slow = (SIZE[a] for a in axes)
    places = np.zeros((3, slow, fast))
    places[axes[1]], places[axes[0]] = np.mgrid[:slow, :fast] + 0.5
    values = inlet.values()
    at = [values[f"turbulence_{a}"].over([*places.reshape(3, -1)]) for a in "xyz"]
    return np.array([[f(t).reshape(slow, fast) for f in at] for t in times])


def test_stresses_lengths_and_time():
    """Sampled at 250 times; the errors of so many samples are below the bounds."""
    u = fluctuations(stream(REYNOLDS, periodic=True), np.arange(250) * 211.0)
    assert np.abs(u[:, 0].mean(axis=(1, 2))).max() < 1e-16  # the flow rate, at any time
    assert np.abs(u.mean(axis=(0, 2, 3))).max() < 4e-4
    R = np.einsum("tiyz,tjyz->ij", u, u) / u[:, 0].size
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    assert np.allclose([R[pair] for pair in pairs], STRESSES, rtol=0.06, atol=2e-6)
    for r in (1, 2, 4, 6):  # along z, periodic, of a component along the face
        found = (u[:, 1] * np.roll(u[:, 1], r, axis=1)).mean() / (u[:, 1] ** 2).mean()
        assert abs(found - np.exp(-np.pi * r**2 / 4 / LENGTH**2)) < 0.04
    far = u[:, 1, :, 0] * u[:, 1, :, -1]  # the faces y- and y+ are walls: no correlation
    assert abs(far.mean() / (u[:, 1] ** 2).mean()) < 0.04
    lags = np.arange(0, 3 * 50.0, 10)
    starts = np.arange(80) * 173.0
    at = fluctuations(stream(REYNOLDS, periodic=True), (starts[:, None] + lags).ravel())[:, 1]
    at = at.reshape(starts.size, lags.size, -1)
    along = (at[:, :1] * at).mean(axis=(0, 2)) / (at[:, 0] ** 2).mean()
    assert abs(np.trapezoid(along, lags) / (4.0 / U) - 1) < 0.08  # integral time L / U


def test_intensity_follows_the_mean_velocity():
    mean = "0.32*y*(ny - y)/ny**2"
    tables = stream(WEAK, inlet={"velocity": [mean, 0.0, 0.0]})
    u = fluctuations(tables, np.arange(200) * 211.0)
    y = np.arange(SIZE[1]) + 0.5
    wanted = 0.1 * 0.32 * y * (SIZE[1] - y) / SIZE[1] ** 2
    for component in u.std(axis=(0, 2)):
        assert np.allclose(component, wanted, rtol=0.12)


def test_the_flow_rate_through_a_pipe_is_that_of_the_mean():
    """Only cells of fluid count; cells of the body have fluctuations, which do no harm."""
    u = fluctuations(stream(WEAK, body=[PIPE]), [0.0, 333.0])[:, 0]
    y, z = np.meshgrid(np.arange(20) + 0.5, np.arange(24) + 0.5)
    inside = (y - 10) ** 2 + (z - 12) ** 2 < 81
    assert np.abs(u[:, inside].mean(axis=1)).max() < 1e-16
    assert np.abs(u[:, inside]).max() > 1e-3


@pytest.mark.parametrize("name", ["regularized", "guo", "zou_he"])
def test_the_velocity_at_the_inlet_is_mean_and_fluctuation(name):
    tables = stream(WEAK, name, inlet={"ramp": 40})
    for steps in (20, 41):
        found = Cluster(tables).start().run(steps).fields("u")["u"][1:-1, 1:-1, 0]
        rise = (1 - np.cos(np.pi * min(steps / 40, 1))) / 2
        (u,) = fluctuations(tables, [float(steps)])
        wanted = u.transpose(1, 2, 0)[1:-1, 1:-1] + rise * np.array([U, 0, 0])
        assert np.abs(found - wanted).max() < 1e-14
        assert np.abs(u).max() > 0.02 * rise


@pytest.mark.parametrize("mean", ["0.3*y*(ny - y)/ny**2", "0.07 + 0*y", "y/250"])
def test_a_mean_velocity_by_a_formula_keeps_the_fluctuations(mean):
    """Formulas have several numbers in the row of a cell, or none; the fluctuations follow."""
    tables = stream(WEAK, "guo", inlet={"velocity": [mean, "1e-3*z/nz", 0.0], "ramp": 10})
    found = Cluster(tables).start().run(12).fields("u")["u"][1:-1, 1:-1, 0]
    (u,) = fluctuations(tables, [12.0])
    y, z = np.meshgrid(np.arange(20) + 0.5, np.arange(24) + 0.5)
    along = eval(mean, {"y": y, "ny": 20})
    wanted = u.transpose(1, 2, 0) + np.stack([along, 1e-3 * z / 24, 0 * y], axis=-1)
    assert np.abs(found - wanted[1:-1, 1:-1]).max() < 1e-14


@pytest.mark.parametrize(
    ("name", "layout"),
    [("equilibrium", "ab"), ("regularized", "moments"), ("guo", "aa"), ("zou_he", "esopull")],
)
def test_slabs_and_restarts_keep_the_bits(name, layout):
    tables = stream(REYNOLDS, name, layout, body=[PIPE] * (name == "equilibrium"))
    if layout == "moments":
        tables["collision"] = {"name": "regularized"}
    whole = Cluster(tables).start().run(60)
    assert_same(whole, Cluster(tables, 3).start().run(60))
    half = Cluster(tables, 2).start().run(23).state()
    again = Cluster(tables).restore(half, 23).run(37)
    assert np.array_equal(again.state(), whole.state())


def test_seeds_and_faces_differ():
    seeds = [fluctuations(stream(WEAK | {"seed": seed}), [50.0]) for seed in (0, 1)]
    assert abs(np.corrcoef(seeds[0].ravel(), seeds[1].ravel())[0, 1]) < 0.3
    both = stream(WEAK)
    both["boundary"][1] = both["boundary"][0] | {"where": ["x+"], "velocity": [-U, 0.0, 0.0]}
    with pytest.raises(CaseError, match=r"mean velocity into the box is -0\.08"):
        parse_case(stream(WEAK, inlet={"velocity": [-U, 0.0, 0.0]}), "test.toml")
    ends = [fluctuations(both, [50.0], face) for face in ("x-", "x+")]
    assert abs(np.corrcoef(ends[0].ravel(), ends[1].ravel())[0, 1]) < 0.3


def test_quantities_with_units():
    units = {"cell": 1e-3, "step": 1e-4, "density": 1000}
    turbulence = {"stresses": ["1e-2 m^2/s^2"] * 3 + [0, "0 m^2/s^2", 0], "length": "3 mm"}
    case = parse_case(stream(turbulence, units=units), "test.toml")
    found = case.boundaries[0].turbulence
    assert found.length == pytest.approx(3)
    assert found.stresses[0] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 1.5}, "turbulence.length: .*2"),
        ({"intensity": None}, "needs either intensity or stresses"),
        ({"stresses": STRESSES}, "needs either intensity or stresses"),
        ({"intensity": -0.1}, "turbulence.intensity: is negative in some cells of x-"),
        ({"intensity": "0.1*t"}, "intensity: '0.1.t' depends on t"),
        ({"intensity": "0.1*q"}, "turbulence.intensity: .*q"),
        ({"intensity": "log(y - 5)"}, "intensity: is not finite in some cells of x-"),
        ({"intensity": None, "stresses": STRESSES[:3]}, "has 3 stresses; allowed: 6"),
        ({"intensity": None, "stresses": [1e-4, 1e-6, 1e-6, 1e-4, 0, 0]},
         r"stresses: found \[0.0001, .*\] at y = 0.5, z = 0.5; allowed: variances of 0 or more"),
        ({"intensity": None, "stresses": [1e-4, "1e-4*(y - 3)", 1e-6, 0, 0, 0]}, "at y = 0.5"),
        ({"intensity": None, "stresses": [1, 1, 1, 0, 0, 0]}, "found the rms 1 at x-; .* of sound"),
        ({"length": 30}, "length: found 30 at x- with 20 x 24 cells"),
    ],
)  # fmt: skip
def test_turbulence_that_is_refused(change, message):
    given = {key: value for key, value in (WEAK | change).items() if value is not None}
    with pytest.raises(CaseError, match=message):
        parse_case(stream(given), "test.toml")


@pytest.mark.parametrize(
    ("inlet", "message"),
    [
        ({"velocity": None, "rho": 1.0}, "turbulence: found with rho"),
        ({"velocity": [f"{U}*t", 0, 0]}, "turbulence: found with a velocity that depends on t"),
        ({"velocity": [0, 0.02, 0]}, "turbulence: found at x-, .* into the box is 0; allowed"),
        ({"name": "equilibrium", "where": ["x-", "y-"]}, "faces x-, y-; allowed: one face per"),
        ({"name": "bounce_back"}, "turbulence"),
    ],
)
def test_faces_without_turbulence(inlet, message):
    tables = stream(WEAK, inlet=inlet)
    first = {key: value for key, value in tables["boundary"][0].items() if value is not None}
    tables["boundary"][0] = first
    if len(first["where"]) > 1:
        tables["boundary"][2]["where"] = ["y+"]
    with pytest.raises(CaseError, match=message):
        parse_case(tables, "test.toml")


def test_turbulence_in_2d_is_refused():
    ends = [
        {"name": "zou_he", "where": ["x-"], "velocity": [U, 0.0], "turbulence": WEAK},
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
        table("bounce_back", "y-", "y+", D=2),
    ]
    with pytest.raises(CaseError, match=r"boundary\.0\.turbulence: found in 2D; allowed: 3D"):
        parse_case(closed("D2Q9", [12, 9], ends), "test.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"intensity": 0.4}, "boundary.0.turbulence: the rms of a component of u' is up to 0.4"),
        ({"length": 6}, "boundary.0.turbulence.length: found 6 at x- with 20 cells across"),
    ],
)
def test_strong_turbulence_and_large_eddies_are_reported(change, message):
    found = warnings_of(parse_case(stream(WEAK | change), "test.toml"))
    about = [text for text in found if "turbulence" in text]
    assert len(about) == bool(message)
    assert message in "".join(about)

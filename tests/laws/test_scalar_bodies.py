"""Fluxes from bodies enter through the area of the surface."""

from math import pi, sqrt

import numpy as np
import pytest
from support.scalars import carried, flow, scalar_state
from support.slabs import Cluster

FLUX = 1e-3


def gain(shape: dict, lattice: str, size: list[int], condition: dict, slabs=1) -> float:
    """The scalar that enters per step a fluid at rest in a closed box around a body."""
    dimensions = len(size)
    faces = [axis + side for axis in "xyz"[:dimensions] for side in "-+"]
    tables = flow(
        "D2Q9" if dimensions == 2 else "D3Q19",
        scalars=[carried(diffusivity=0.1, lattice=lattice, initial={"value": 0.0})],
        domain={"size": size, "periodic": [False] * dimensions},
        boundary=[{"name": "bounce_back", "where": faces}],
        initial={},
        body=[{"shape": shape, "boundary": {"name": "bounce_back"}, "scalar": {"T": condition}}],
    )
    cluster = Cluster(tables, slabs).start()
    return float(scalar_state(cluster.run(1)).sum())


def ball(size: list[int], R: float) -> dict:
    centre = [n / 2 + shift for n, shift in zip(size, (0.1, 0.23, 0.31), strict=False)]
    return {"name": "sphere", "centre": centre, "radius": R}


@pytest.mark.parametrize("slabs", [1, 2])
@pytest.mark.parametrize(
    ("lattice", "size", "area"),
    [
        ("D2Q5", [26, 26], 2 * pi * 10),
        ("D2Q9", [26, 26], 2 * pi * 10),
        ("D3Q7", [24, 24, 24], 4 * pi * 100),
        ("D3Q19", [24, 24, 24], 4 * pi * 100),
    ],
)
def test_a_ball_has_the_area_of_its_surface(lattice, size, area, slabs):
    found = gain(ball(size, 10), lattice, size, {"flux": FLUX}, slabs)
    assert found == pytest.approx(FLUX * area, rel=0.02)


@pytest.mark.parametrize("lattice", ["D2Q5", "D2Q9"])
def test_a_wall_of_any_slope_has_its_area(lattice):
    for slope in (0.0, 0.3, 1.0, 2.2):
        size = [40, 40]
        normal = np.array([slope, 1]) / sqrt(1 + slope**2)
        shape = {"name": "half_space", "point": [20.1, 20.2], "normal": list(-normal)}
        found = gain(shape, lattice, size, {"flux": FLUX}) / FLUX
        run = min(40, 40 / slope if slope else 40)
        assert found == pytest.approx(run * sqrt(1 + slope**2), rel=0.04)


def test_exchange_with_surroundings_has_the_area_of_the_surface():
    """From T = 0 the first step gains h (ambient - 0) / (1 + (c.n) h / cs2) per area."""
    size, h = [26, 26], 1e-3
    found = gain(ball(size, 10), "D2Q5", size, {"h": h, "ambient": 1.0})
    assert found == pytest.approx(2 * pi * 10 * h, rel=0.02)


@pytest.mark.parametrize("lattice", ["D2Q5", "D2Q9"])
def test_a_ball_across_a_periodic_face_is_the_same_ball(lattice):
    gains = []
    for centre in ([6.0, 6.5], [12.0, 6.5], [0.0, 0.5]):
        body = {"shape": {"name": "sphere", "centre": centre, "radius": 3.2},
                "boundary": {"name": "bounce_back"}, "scalar": {"T": {"flux": FLUX}}}  # fmt: skip
        tables = flow(
            scalars=[carried(lattice=lattice, initial={"value": 0.0})],
            domain={"size": [12, 12], "periodic": [True, True]},
            initial={},
            body=[body],
        )
        gains += [scalar_state(Cluster(tables, k).start().run(3)).sum() for k in (1, 3)]
    np.testing.assert_allclose(gains, gains[0], rtol=1e-9)


def sphere(boundary: str, condition: dict, N=12) -> float:
    """The error of conduction from a sphere to the faces of a box, where T = R/r is given."""
    R, c, D = N / 4.4, N / 2, 0.2
    exact = f"{R}/sqrt((x-{c})**2 + (y-{c})**2 + (z-{c})**2)"
    faces = [axis + side for axis in "xyz" for side in "-+"]
    ends = [{"name": "value", "where": faces, "value": exact}]
    initial = {"value": f"where({exact} > 1, 1, {exact})"}
    tables = flow(
        "D3Q19",
        scalars=[carried(diffusivity=D, lattice="D3Q7", initial=initial, boundary=ends)],
        domain={"size": [N] * 3, "periodic": [False] * 3},
        boundary=[{"name": "bounce_back", "where": faces}],
        initial={},
        body=[{"shape": {"name": "sphere", "centre": [c] * 3, "radius": R},
               "boundary": {"name": boundary}, "scalar": {"T": condition}}],
    )  # fmt: skip
    (solver,) = (cluster := Cluster(tables).start().run(int(N * N / 2 / D))).solvers
    at = np.arange(N) + 0.5 - c
    r = np.sqrt(sum(a**2 for a in np.meshgrid(at, at, at)))
    error = (cluster.fields("T")["T"] - R / r)[~solver.solid(0, N)]
    return float(np.sqrt((error**2).mean()))


@pytest.mark.parametrize(
    ("boundary", "condition"),
    [
        ("interpolated", {"value": 1.0}),
        ("central_linear", {"value": 1.0}),
        ("bounce_back", {"flux": 0.2 * 4.4 / 12}),
        ("bounce_back", {"h": 0.2 * 4.4 / 12, "ambient": "2 + 0*t"}),
    ],
)
def test_conduction_from_a_sphere(boundary, condition):
    """Half-way walls of a given value have an error of 0.0074."""
    assert sphere(boundary, condition) < 0.0065

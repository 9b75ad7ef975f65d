"""Vorticity and Q criterion of analytic fields: exact in the mean gradient, of second order."""

import numpy as np
import pytest
from support.slabs import PRECISIONS, Cluster, box

WAVES = {  # u = A (sin kz + cos ky, sin kx + cos kz, sin ky + cos kx): curl u = k u
    3: [
        "sin(2*pi*z/nz) + cos(2*pi*y/ny)",
        "sin(2*pi*x/nx) + cos(2*pi*z/nz)",
        "sin(2*pi*y/ny) + cos(2*pi*x/nx)",
    ],
    2: ["sin(2*pi*y/ny)*cos(2*pi*x/nx)", "-cos(2*pi*y/ny)*sin(2*pi*x/nx)"],
}
A = 0.02


def fields(D, n, walls=False, slabs=2, precision="double"):
    lattice = "D3Q19" if D == 3 else "D2Q9"
    more = {"initial": {"u": [f"{A}*({wave})" for wave in WAVES[D]]}}
    more["domain"] = {"size": [n] * D, "periodic": [not walls] * D}
    if walls:
        faces = [axis + side for axis in "xyz"[:D] for side in "-+"]
        more["boundary"] = [{"name": "bounce_back", "where": faces}]
    found = Cluster(box(lattice, **more, precision=PRECISIONS[precision]), slabs).start()
    return found.fields("vorticity", "q_criterion")


def exact(D, n):
    """Vorticity and Q in cell centres, arrays as the solver's."""
    k = 2 * np.pi / n
    x = k * (np.arange(n) + 0.5)
    if D == 2:
        y, x = x[:, None, None], x[None, None, :]
        sx, cx, sy, cy = np.sin(x), np.cos(x), np.sin(y), np.cos(y)
        # omega = dv/dx - du/dy; Q = -(u_x^2 + v_y^2) / 2 - u_y v_x
        return -2 * A * k * cy * cx, (A * k) ** 2 * (-((sy * sx) ** 2) + (cy * cx) ** 2)
    z, y, x = x[:, None, None], x[None, :, None], x[None, None, :]
    u = (np.sin(z) + np.cos(y), np.sin(x) + np.cos(z), np.sin(y) + np.cos(x))
    omega = np.stack(np.broadcast_arrays(*u), axis=-1) * A * k
    products = -np.sin(y) * np.cos(x) - np.cos(z) * np.sin(x) - np.sin(z) * np.cos(y)
    return omega, -((A * k) ** 2) * products


@pytest.mark.parametrize("D", [2, 3])
def test_they_are_of_second_order(D):
    errors = []
    for n in (12, 24):
        found, (omega, Q) = fields(D, n), exact(D, n)
        errors.append(
            [
                np.abs(found["vorticity"] - omega).max() / np.abs(omega).max(),
                np.abs(found["q_criterion"] - Q).max() / np.abs(Q).max(),
            ]
        )
    order = np.log2(np.divide(*errors))
    assert (order > 1.9).all(), order
    assert max(errors[1]) < 0.03


@pytest.mark.parametrize("precision", ["half", "single", "mixed"])
def test_the_velocity_that_they_look_at_is_not_a_stored_population(precision):
    """Whatever the bits of these: u has those of the computation."""
    found, exactly = fields(2, 12, precision=precision), fields(2, 12)
    allowed = {"half": 5e-3, "single": 1e-5, "mixed": 1e-6}[precision]
    for name, values in exactly.items():
        assert np.abs(found[name] - values).max() < allowed * np.abs(values).max()


@pytest.mark.parametrize("D", [2, 3])
def test_differences_are_one_sided_beside_walls(D):
    """Inside they are those of the periodic box; beside walls off by the first order."""
    n = 24
    (free, walled), (omega, Q) = (fields(D, n, walls) for walls in (False, True)), exact(D, n)
    inside = (slice(1, -1), slice(None) if D == 2 else slice(1, -1), slice(1, -1))
    for name, expected in (("vorticity", omega), ("q_criterion", Q)):
        assert np.array_equal(free[name][inside], walled[name][inside])
        error = np.abs(walled[name] - expected).max() / np.abs(expected).max()
        assert 0 < error < 0.3

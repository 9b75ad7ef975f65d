"""Incoming populations of an equilibrium boundary against the formula, with rho other than 1."""

import numpy as np
import pytest
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.core.registry import make

RHO, U = 1.05, (0.02, 0.01)
LATTICE = make("lattices", "D2Q9")


def feq(rho, u):
    cu = np.array(LATTICE.c) @ u
    w = np.array([float(w) for w in LATTICE.w])
    return w * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * np.dot(u, u))


@pytest.mark.parametrize(
    ("given", "rho", "u"),
    [({"rho": 1.0}, 1.0, U), ({"velocity": [0.05, 0.0]}, RHO, (0.05, 0.0))],
)
def test_density_and_velocity_come_from_where_the_docstring_says(given, rho, u):
    faces = [{"name": "equilibrium", "where": ["x-"], "velocity": list(U)}]
    faces.append({"name": "equilibrium", "where": ["x+"]} | given)
    case = box(
        "D2Q9",
        size=[6, 5],
        precision=PRECISIONS["double"],
        domain={"size": [6, 5], "periodic": [False, True]},
        initial={"rho": RHO, "u": list(U)},
        boundary=faces,
    )
    found = Cluster(case).start().run(1).fields("rho")["rho"]
    enters = np.array([c[0] < 0 for c in LATTICE.c])
    expected = np.where(enters, feq(rho, u), feq(RHO, U)).sum()
    assert found[:, 0, -1] == pytest.approx(expected, abs=1e-13)
    assert found[:, 0, 2] == pytest.approx(RHO, abs=1e-13)

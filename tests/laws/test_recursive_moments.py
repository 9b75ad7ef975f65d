"""`recursive_regularized` in the layout `moments`: the flows of `ab`, without populations.

More than 20 s: kernel texts of two layouts on three lattices.
"""

import numpy as np
import pytest
from support.equations import Numbers
from support.flows import flow, relative, velocity
from support.slabs import Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.codegen.model import Model
from mpilbm.physics.algebra import moments_of, pairs

LATTICES = ("D2Q9", "D3Q19", "D3Q27")
over_lattices = pytest.mark.parametrize("lattice", LATTICES)
NAME = "recursive_regularized"
CLOSED = {"name": NAME, "closure": {"name": "smagorinsky"}}


def vortex(lattice, collision=NAME, N=16, U=0.1, nu=0.002, **tables) -> dict:
    """Taylor's and Green's, in 3D with a third velocity component that varies along z."""
    D = int(lattice[1])
    u = [f"{U}*sin(2*pi*x/nx)*cos(2*pi*y/ny)", f"-{U}*cos(2*pi*x/nx)*sin(2*pi*y/ny)", 0]
    if D == 3:
        u = [f"{v}*cos(2*pi*z/nz)" if v else f"{U}/3*sin(2*pi*x/nx)" for v in u]
    return flow(lattice, collision, [N, N, 6][:D], nu, initial={"u": u[:D]}, **tables)


def cavity(lattice, collision=NAME, **tables) -> dict:
    """A lid that slides along both of its axes, walls on all other faces."""
    D = int(lattice[1])
    faces = [axis + side for axis in "xyz"[:D] for side in "-+"]
    velocity = [0.1, 0] if D == 2 else [0.1, 0.05, 0]
    lid = {"name": "bounce_back", "where": faces[-1:], "velocity": velocity}
    return flow(
        lattice,
        collision,
        [9, 10, 8][:D],
        0.005,
        domain={"size": [9, 10, 8][:D], "periodic": [False] * D},
        boundary=[{"name": "bounce_back", "where": faces[:-1]}, lid],
        **tables,
    )


def differences(tables, steps) -> dict:
    """Largest differences of rho and u between the layouts, relative to 1 and to the largest u."""
    found = [
        Cluster(tables | {"layout": {"name": layout}}).start().run(steps).fields("rho", "u")
        for layout in ("ab", "moments")
    ]
    scale = {"rho": 1, "u": abs(found[0]["u"]).max()}
    return {name: abs(found[0][name] - found[1][name]).max() / scale[name] for name in scale}


@pytest.mark.parametrize("collision", [NAME, CLOSED], ids=["plain", "smagorinsky"])
@pytest.mark.parametrize("case", [vortex, cavity])
@over_lattices
def test_the_flow_is_that_of_the_populations(lattice, case, collision):
    """Over many steps, in which rounding errors grow little."""
    given = case(lattice, collision)
    for name, difference in differences(given, 100).items():
        assert difference < 1e-12, name


@over_lattices
def test_it_differs_from_the_flow_of_regularized(lattice):
    """The terms of third order show: the layout does not drop them."""
    one, other = (
        velocity(Cluster(vortex(lattice, name, layout={"name": "moments"})).start().run(100))
        for name in (NAME, "regularized")
    )
    assert relative(other, one) > 1e-4


def test_the_vortex_decays_with_the_viscosity():
    """As exp(-2 nu k^2 t); U falls with 1/N, so that the error does with 1/N^2."""
    nu, errors = 0.05, []
    for N in (16, 32):
        k = 2 * np.pi / N
        steps = round(0.35 / (nu * k**2))
        tables = vortex("D2Q9", N=N, U=0.64 / N, nu=nu, layout={"name": "moments"})
        cluster = Cluster(tables).start().run(steps // 4)
        begin = np.linalg.norm(velocity(cluster))
        end = np.linalg.norm(velocity(cluster.run(steps)))
        errors.append(abs(np.log(begin / end) / (2 * k**2 * steps) / nu - 1))
    assert errors[1] < 1e-3
    assert errors[1] < errors[0] / 2.5


class Cells(np.ndarray):
    """A value of all cells: formulas do not omit it as the number zero."""

    def __ne__(self, other):
        return True

    def __bool__(self):
        return True


def by_equations(tables, steps) -> np.ndarray:
    """u of a periodic box: rebuild populations from the stored moments, collide."""
    case = parse_case(tables, "test.toml")
    (fluid,), lattice = case.fluids, case.lattice
    model = Model(lattice, fluid.collision, fluid.force, offset=True)
    rates, F = fluid.collision.rates(fluid.viscosity, lattice), fluid.force.value
    kernel = Numbers(**{f"force_{a}": F_a for a, F_a in zip("xyz", F, strict=False)})
    begin = Cluster(tables).start().fields("rho", "u")
    u = [begin["u"][..., a].view(Cells) for a in range(lattice.D)]
    f = model.initial(kernel, begin["rho"].view(Cells) - 1, u)
    for step in range(steps + 1):
        left = model.collide(kernel, list(f), rates) if step else f
        density, momentum, second = moments_of(lattice, left)
        v = [j / (1 + density) for j in momentum]
        numbered = zip(second, pairs(lattice.D), strict=True)
        A = [m - momentum[a] * v[b] for m, (a, b) in numbered]
        u = [v_a - F_a / 2 / (1 + density) for v_a, F_a in zip(v, F, strict=True)]
        left = model.rebuilt(density, v, A, range(lattice.Q))
        f = [np.roll(each, lattice.offset(i), axis=(0, 1, 2)) for i, each in enumerate(left)]
    return np.stack(u, axis=-1)


def forced(lattice, strength=1.0, force="guo", layout="moments") -> dict:
    value = [1e-4 * strength, -2e-4 * strength, 3e-4 * strength][: int(lattice[1])]
    collision = {"name": NAME}
    return box(
        lattice,
        collision=collision,
        force={"name": force, "value": value},
        precision={"compute": "float64", "storage": "float64"},
        layout={"name": layout},
    )


@over_lattices
def test_a_force_has_the_higher_moments_of_the_recursion(lattice):
    tables = forced(lattice)
    found = velocity(Cluster(tables).start().run(6))
    assert abs(found - by_equations(tables, 6)).max() < 1e-15


@pytest.mark.parametrize("force", ["guo", "exact_difference"])
@over_lattices
def test_the_difference_by_a_force_is_of_the_order_of_F_u_u(lattice, force):  # noqa: N802
    found = []
    for strength in (0.1, 0.2):
        one, other = (
            velocity(Cluster(forced(lattice, strength, force, layout)).start().run(10))
            for layout in ("ab", "moments")
        )
        found.append(abs(one - other).max())
    F, u = 1e-4, 0.05
    assert 0 < found[0] < 10 * F * u**2
    assert found[1] / found[0] == pytest.approx(2, rel=0.05)

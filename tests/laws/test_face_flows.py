"""What boundaries do to flows: the same in every orientation, nothing to uniform flow.

More than 20 s: each boundary has a kernel text for each orientation.
"""

import numpy as np
import pytest
from support.faces import closed, on_faces, table
from support.slabs import Cluster

from mpilbm.core.registry import find, make, names

NAMES = on_faces()
ON_SITE = [name for name in NAMES if find("boundaries", name).wall_at == "node"]

GIVEN = {
    key: [name for name in ON_SITE if key in find("boundaries", name).model_fields]
    for key in ("rho", "velocity")
}


def defined(name: str, lattice: str) -> bool:
    allowed = find("boundaries", name).lattices
    return allowed is None or lattice in allowed


def collides(lattice: str) -> str:
    """A collision that the lattice has."""
    return "regularized" if make("lattices", lattice).isotropy > 2 else "mrt"


def turned(vector, axes, signs):
    """A vector after axis a has become axes[a], with this sign."""
    found = [0.0] * len(axes)
    for value, axis, sign in zip(vector, axes, signs, strict=True):
        found[axis] = sign * value
    return found


def turned_box(lattice, size, entries, axes, signs):
    """The box of (name, face, velocity) after a rotation."""
    boundaries = []
    for name, (axis, side), velocity in entries:
        a = "xyz".index(axis)
        side = side if signs[a] > 0 else {"-": "+", "+": "-"}[side]
        entry = table(name, "xyz"[axes[a]] + side, D=len(axes))
        entry |= {} if name == "free_slip" else {"priority": len(boundaries)}  # not by the face
        if "velocity" in find("boundaries", name).model_fields:
            if "velocity" not in entry:  # walls slide
                velocity = [v * (k != a) for k, v in enumerate(velocity)]
            entry["velocity"] = turned(velocity, axes, signs)
        boundaries.append(entry)
    sides = [int(abs(n)) for n in turned(size, axes, signs)]
    still = {"rho": 1.0, "u": [0.0] * len(axes)}
    return closed(lattice, sides, boundaries, initial=still, collision={"name": collides(lattice)})


def flow(tables, axes, signs):
    """rho and u as (x, y(, z)[, component]), turned back."""
    cluster = Cluster(tables).start().run(9)
    fields = cluster.fields("rho", "u")
    D, lattice, shape = len(axes), cluster.case.lattice, cluster.case.shape
    plane, row, k = np.ogrid[tuple(slice(n) for n in shape)]
    both = np.zeros((*shape[:2], tables["domain"]["size"][0], 1 + D))  # with nodes not stored
    both[plane, row, lattice.x(plane, row, k)] = np.concatenate(
        [fields["rho"][..., None], fields["u"]], axis=-1
    )
    both = both.reshape(*tables["domain"]["size"][::-1], -1).transpose(*range(D)[::-1], D)
    both = both.transpose(*axes, D)  # the axis that a has become is read as a again
    for a in range(D):
        both = np.flip(both, a) if signs[a] < 0 else both
    back = [signs[a] * both[..., 1 + axes[a]] for a in range(D)]
    return np.stack([both[..., 0], *back], axis=-1)


def driven_and_not(every: list[str]) -> list[str]:
    """All names, by turns one that takes a velocity and one that need not."""
    driven = [name for name in every if "velocity" in find("boundaries", name).model_fields]
    others = [name for name in every if name not in driven]
    count = max(len(driven), len(others))
    return [some[k % len(some)] for k in range(count) for some in (driven, others)]


TURNS = {2: ((1, 0), (-1, 1)), 3: ((1, 2, 0), (1, -1, 1))}


@pytest.mark.parametrize("lattice", names("lattices"))
def test_every_orientation_gives_the_same_flow(lattice):
    D = make("lattices", lattice).D
    chosen = driven_and_not([name for name in NAMES if defined(name, lattice)])
    for first in range(0, len(chosen), 2 * D) if lattice in ("D2Q9", "D3Q19") else [0]:
        some = [chosen[(first + k) % len(chosen)] for k in range(2 * D)]
        faces = [axis + side for side in "-+" for axis in "xyz"[:D]]
        entries = [
            (name, face, [0.01 + 0.002 * k, -0.02, 0.015][:D])
            for k, (name, face) in enumerate(zip(some, faces, strict=True))
        ]
        plain, size = (tuple(range(D)), (1,) * D), (6, 5, 8)[:D]
        one, other = (
            flow(turned_box(lattice, size, entries, *turn), *turn) for turn in (plain, TURNS[D])
        )
        assert np.abs(one[..., 1:]).max() > 0.01
        assert np.abs(one - other).max() < 1e-12


@pytest.mark.parametrize("name", ON_SITE)
def test_uniform_flow_passes_unchanged(name):
    """Whatever is given: the velocity, or the density."""
    u = [0.01, 0.05]
    for given in ({}, {"rho": 1.02}) if name in GIVEN["rho"] else ({},):
        ends = [table("zou_he", "y-", D=2, velocity=u), table(name, "y+", D=2, **given)]
        ends = [e | ({"velocity": u} if "velocity" in e else {}) for e in ends]
        if given:
            u = [0.0, 0.05]  # along the face it is zero
            ends[0]["velocity"] = u
        case = closed("D2Q9", [5, 6], ends, initial={"rho": 1.02, "u": u})
        case["domain"]["periodic"] = [True, False]
        fields = Cluster(case).start().run(20).fields("rho", "u")
        assert np.abs(fields["rho"] - 1.02).max() < 1e-13
        assert np.abs(fields["u"] - u).max() < 1e-13


@pytest.mark.parametrize("lattice", names("lattices"))
def test_on_site_values_are_exact(lattice):
    """Also where stress along the face, and a force, must be balanced.

    A given density is that of a normal velocity which contains 1/16 of the previous one.
    """
    D = make("lattices", lattice).D
    size, slow = [6, 4, 8][-D:], "xyz"[D - 1]
    first, *_, last = [n for n in ("regularized", "zou_he") if defined(n, lattice)] * 2
    u = ["0.03*sin(2*pi*x/nx)*cos(t/9)", "0.02 + 0.01*cos(2*pi*x/nx)", "0.04"][:D]
    ends = [
        {"name": first, "where": [slow + "-"], "velocity": u},
        {"name": last, "where": [slow + "+"], "rho": "1 + 0.002*cos(2*pi*x/nx)"},
    ]
    still = {"rho": 1, "u": [0] * D}
    force = {"name": "guo", "value": [1e-3, -2e-3, 3e-3][:D]}
    tables = closed(
        lattice, size, ends, force=force, initial=still, collision={"name": collides(lattice)}
    )
    tables["domain"]["periodic"] = [True] * (D - 1) + [False]
    cluster = Cluster(tables).start().run(4)
    before = cluster.fields("u")["u"][-1, ..., -1]
    fields = cluster.run(1).fields("rho", "u")
    rows, nx = cluster.case.shape[1:]

    def x(plane):
        return cluster.case.lattice.x(plane, *np.ogrid[:rows, :nx]) + 0.5

    waves = 0.03 * np.sin(2 * np.pi * x(0) / size[0]) * np.cos(5 / 9)
    waves = [waves, 0.02 + 0.01 * np.cos(2 * np.pi * x(0) / size[0]), np.full(waves.shape, 0.04)]
    assert np.abs(fields["u"][0] - np.stack(waves[:D], axis=-1)).max() < 1e-14
    far = size[-1] - 1
    rho = 1 + 0.002 * np.cos(2 * np.pi * x(far) / size[0])
    now = fields["u"][-1, ..., -1] * fields["rho"][-1] / rho
    exact = (now - before / 16) * 16 / 15  # outward
    assert np.abs(now - before).max() > 1e-4
    assert np.abs(fields["rho"][-1] - rho * (1 + exact - now)).max() < 1e-14
    assert np.abs(fields["u"][-1, ..., :-1]).max() < 1e-14


def poiseuille(name: str, n: int) -> float:
    """Error of a plane channel of n x 2n cells, parabola in, density 1 at the other end."""
    top, viscosity = 0.4 / n, 0.1
    u = f"4*{top}*x*(nx - x)/nx**2"
    slope = 24 * viscosity * top / n**2
    ends = [
        table("bounce_back", "x-", "x+", D=2),
        table("zou_he", "y-", D=2, velocity=[0.0, u]),
        table(name, "y+", D=2, rho=1.0),
    ]
    initial = {"rho": f"1 + {slope}*(ny - 0.5 - y)", "u": [0.0, u]}
    more = {"fluid": {"viscosity": viscosity}, "collision": {"name": "trt"}, "initial": initial}
    cluster = Cluster(closed("D2Q9", [n, 2 * n], ends, **more)).start()
    found, x = cluster.run(30 * n * n).fields("u")["u"][:, 0], np.arange(n) + 0.5
    across = found[..., 1] - 4 * top * x * (n - x) / n**2
    return float(np.sqrt((found[..., 0] ** 2 + across**2).mean())) / top


FIRST_ORDER = ("equilibrium", "do_nothing", "grad", "tamm_mott_smith")


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", GIVEN["rho"])
def test_poiseuille_to_a_given_density(name):
    coarse, fine = poiseuille(name, 8), poiseuille(name, 16)
    slope = np.log2(coarse / fine)
    print(f"{name}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}")
    assert slope > 1.9 or (name in FIRST_ORDER and fine < 0.04)


def plate(name: str, n: int) -> float:
    """Error of flow along two faces, driven by a force, one face sliding: no-slip at the cells."""
    top, slide, viscosity, height = 0.4 / n, 0.1 / n, 0.1, n - 1
    flow = f"4*{top}*(y - 0.5)*(ny - 0.5 - y)/{height}**2 + {slide}*(ny - 0.5 - y)/{height}"
    ends = [
        {"name": name, "where": ["y-"], "velocity": [slide, 0.0]},
        {"name": name, "where": ["y+"], "velocity": [0.0, 0.0]},
    ]
    force = {"name": "guo", "value": [8 * viscosity * top / height**2, 0.0]}
    more = {"fluid": {"viscosity": viscosity}, "collision": {"name": "bgk"}}
    more["initial"] = {"rho": 1, "u": [flow, 0.0]}
    tables = closed("D2Q9", [3, n], ends, force=force, **more)
    tables["domain"]["periodic"] = [True, False]
    found = Cluster(tables).start().run(8 * n * n).fields("u")["u"][:, 0, 1, 0]
    y = np.arange(n)
    expected = 4 * top * y * (height - y) / height**2 + slide * (height - y) / height
    return float(np.abs(found - expected).max()) / top


@pytest.mark.parametrize("name", GIVEN["velocity"])
def test_poiseuille_and_couette_along_faces(name):
    coarse, fine = plate(name, 8), plate(name, 16)
    slope = np.log2(coarse / fine)
    print(f"{name}: {coarse:.2e}, {fine:.2e}, order {slope:.2f}")
    assert slope > 1.9 or fine < 1e-6 or (name in FIRST_ORDER and slope > 1)


def reflected(**outlet) -> float:
    """Amplitude that comes back, per amplitude of a pulse of sound that reaches the outlet."""
    size, cs, top = 160, 3**-0.5, 1e-4
    pulse = f"{top}*exp(-((y - 90)/8)**2)"
    ends = [
        table("zou_he", "y-", D=2, velocity=[0.0, 0.0]),
        {"name": "characteristic", "where": ["y+"]} | outlet,
    ]
    initial = {"rho": f"1 + {pulse}", "u": [0.0, f"{cs}*{pulse}"]}
    tables = closed("D2Q9", [3, size], ends, fluid={"viscosity": 0.001}, initial=initial)
    tables["domain"]["periodic"] = [True, False]
    fields = Cluster(tables).start().run(round(140 / cs)).fields("rho", "u")
    backwards = (fields["rho"][:, 0, 1] - 1 - fields["u"][:, 0, 1, 1] / cs) / 2
    return float(np.abs(backwards[40:150]).max()) / top


def test_what_outlets_reflect():
    """Figures of the README: a held density, what is copied, and waves that pass."""
    assert reflected(name="copy", rho=1.0) == pytest.approx(0.97, abs=0.02)
    assert reflected(name="copy") == pytest.approx(2 - 3**0.5, abs=0.01)
    assert reflected(rho=1.0) < 0.02
    assert reflected() < 0.005


def moving():
    """Boundaries with a velocity; the laws of wall models hold for steady boundary layers."""
    keys = {name: find("boundaries", name).model_fields for name in NAMES}
    return [name for name, each in keys.items() if "velocity" in each and "law" not in each]


@pytest.mark.parametrize("name", moving())
def test_oscillating_plate(name):
    """Stokes' second problem, with a wall at rest opposite: u = Im U exp(i w t) sinh(k (h - y)).

    A force below rounding: with it the kernels are those of `plate`.
    """
    half, n, viscosity, period = find("boundaries", name).wall_at == "half", 16, 0.1, 400
    plates = [
        {"name": name, "where": ["y-"], "velocity": [f"0.05*sin(2*pi*t/{period})", 0.0]},
        {"name": name, "where": ["y+"], "velocity": [0.0, 0.0]},
    ]
    more = {"fluid": {"viscosity": viscosity}, "collision": {"name": "bgk"}}
    more["force"] = {"name": "guo", "value": [1e-30, 0.0]}
    tables = closed("D2Q9", [3, n], plates, initial={"rho": 1, "u": [0.0, 0.0]}, **more)
    tables["domain"]["periodic"] = [True, False]
    cluster, worst = Cluster(tables).start().run(6 * period), 0.0
    height, y = (n, np.arange(n) + 0.5) if half else (n - 1, np.arange(n))
    k = np.sqrt(2j * np.pi / period / viscosity)
    shape = np.sinh(k * (height - y)) / np.sinh(k * height)
    for step in range(period // 8, period + 1, period // 8):
        found = cluster.run(period // 8).fields("u")["u"][:, 0, 1, 0] / 0.05
        expected = (np.exp(2j * np.pi * step / period) * shape).imag
        worst = max(worst, float(np.abs(found - expected).max()))
    print(f"{name}: {worst:.2e}")
    assert worst < (0.3 if name in FIRST_ORDER else 0.03)

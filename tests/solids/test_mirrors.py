"""Boundaries next to free slip: the flow is half of that in a box twice as wide."""

import numpy as np
import pytest
from support.body_forces import by_plane
from support.faces import closed, on_faces, table
from support.slabs import Cluster

from mpilbm.core.registry import find, names

OTHERS = [
    name for name in on_faces()
    if not find("boundaries", name).declares.per_link  # nor read along links
]  # fmt: skip
WAYS = [(name, given) for name in OTHERS for given in ((), ("rho",))]
WAYS = [(n, g) for n, g in WAYS if not g or g[0] in find("boundaries", n).model_fields]
LAYOUTS = [{"name": n} for n in names("layouts")]
LAYOUTS += [{"name": "indirect", "streaming": n} for n in ("aa", "esopull")]
N = (9, 5, 4)  # cells along x, and half of those along y and z


def stream(lattice: str, ends, half: bool, layout=None, **tables) -> dict:
    """A flow along x from one of the ends to the other, about the planes in the middle."""
    D, across = int(lattice[1]), "yz"[: int(lattice[1]) - 1]
    size = [N[0], *(n * (2 - half) for n in N[1:D])]
    place = {a: a if half else f"abs({a} - {n})" for a, n in zip(across, N[1:], strict=False)}
    side = {a: "1" if half else f"({a} - {n})/abs({a} - {n})"
            for a, n in zip(across, N[1:], strict=False)}  # fmt: skip
    y, z = place["y"], place.get("z", "0")
    u = [f"0.05 + 0.02*cos(pi*({y} - 0.2*{z})/5)*sin(pi*x/9)",
         *(f"({side[a]})*0.02*sin(pi*{place[a]}/4.5)*cos(2*x + {y})" for a in across)]  # fmt: skip
    slip = {"name": "free_slip", "where": [a + side for a in across for side in "-+"]}
    faces = [slip, *ends] if half else [*ends, slip]  # whatever their order
    rho = f"1 + 0.01*cos(pi*{y}/5 + {z}/3)*cos(x)"
    more = {"layout": layout or {"name": "ab"}, "fluid": {"viscosity": 0.03}} | tables
    return closed(lattice, size, faces, initial={"rho": rho, "u": u}, **more)


def ends(lattice: str, name: str, given) -> list[dict]:
    """An inlet at which a velocity is given, and this outlet or wall."""
    D = int(lattice[1])
    u = [0.05] + [0.0] * (D - 1)
    out = table(name, "x+", D=D, **dict.fromkeys(given, 1.0))
    out |= {"velocity": u} if "velocity" in out else {}
    return [{"name": "zou_he", "where": ["x-"], "velocity": u}, out]


def difference(lattice: str, ends, steps: int, slabs=1, layout=None, **tables) -> float:
    """The largest of rho and u between a quarter or half, and that part of the whole."""
    whole = Cluster(stream(lattice, ends, False, **tables)).start().run(steps)
    part = Cluster(stream(lattice, ends, True, layout, **tables), slabs).start().run(steps)
    found, own = whole.fields("rho", "u"), part.fields("rho", "u")
    planes, rows = (N[2], N[1]) if lattice != "D2Q9" else (N[1], 0)
    return max(np.abs(own[k] - found[k][planes:, rows:]).max() for k in found)


@pytest.mark.parametrize(("name", "given"), WAYS)
def test_half_of_a_flow_goes_on_as_the_whole(name, given):
    assert difference("D2Q9", ends("D2Q9", name, given), 12) < 2e-15


THIRD = [  # conditions that set whole cells, look inwards, keep a state, correct the momentum
    ("D3Q19", "characteristic", ("rho",)),
    ("D3Q27", "grad", ()),
    ("D3Q15", "zou_he", ("rho",)),
    ("D3Q19", "regularized", ("rho",)),
]


@pytest.mark.parametrize(("lattice", "name", "given"), THIRD)
def test_a_quarter_of_a_flow_goes_on_as_the_whole(lattice, name, given):
    """Where two faces that slip meet the outlet."""
    assert difference(lattice, ends(lattice, name, given), 6) < 2e-15


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: "-".join(one.values()))
@pytest.mark.parametrize("name", ["characteristic", "regularized"])
def test_in_every_layout_on_any_number_of_slabs(name, layout):
    both = ends("D2Q9", name, ("rho",))
    found = [difference("D2Q9", both, 7, slabs, layout) for slabs in (1, 3, 5)]
    assert max(found) < 3e-15
    assert len({*found}) == 1


@pytest.mark.parametrize("slabs", [1, 3])
@pytest.mark.parametrize("name", ["bounce_back", "full_way", "interpolated"])
def test_half_of_a_body_bears_half_of_the_force(name, slabs):
    """Also along links that meet it behind the plane of symmetry."""
    found = []
    for half in (False, True):
        disc = {"name": "sphere", "centre": [4.2, 0.0 if half else N[1]], "radius": 2.3}
        body = {"label": "disc", "shape": disc, "boundary": {"name": name}}
        output = [{"name": "body_forces", "every": 1}]
        tables = stream("D2Q9", ends("D2Q9", "regularized", ("rho",)), half)
        cluster = Cluster(tables | {"body": [body], "output": output}, slabs).start().run(6)
        force = np.concatenate(cluster.each(by_plane)).sum(axis=(0, 1))
        found.append((cluster.fields("u")["u"], force))
    (u, whole), (own, part) = found
    assert np.abs(own - u[N[1] :]).max() < 2e-15
    assert abs(2 * part[0] - whole[0]) < 1e-14 < abs(part[0])


def test_a_body_on_a_mirror_bears_the_force_on_its_part_of_the_whole():
    """Across the mirror too, its torque and the parts of the force."""
    found = []
    for half in (False, True):
        y, bodies = (0 if half else N[1]), []
        for label, lower in [("down", y - 2), ("up", y)][half:]:
            shape = {"name": "box", "lower": [2, lower], "upper": [5, lower + 2]}
            bodies.append({"label": label, "shape": shape, "boundary": {"name": "bounce_back"}})
        tables = stream("D2Q9", ends("D2Q9", "regularized", ("rho",)), half)
        tables |= {"body": bodies, "output": [{"name": "body_forces", "every": 1, "split": True}]}
        (solver,) = Cluster(tables).start().run(6).solvers
        force = by_plane(solver).sum(axis=0)[-1]
        force[2] += y * force[0]  # the torque about the mirror
        found.append(force)
    assert np.abs(found[1] - found[0]).max() < 1e-14 < np.abs(found[0]).min()


@pytest.mark.parametrize("layout", ["aa", "moments"])
@pytest.mark.parametrize("name", ["interpolated", "tamm_mott_smith"])
def test_what_a_fluid_loses_along_a_mirror_its_body_takes(name, layout):
    """Also where the body's boundary changes what comes from the mirror."""
    disc = {"name": "sphere", "centre": [4.2, 1.2], "radius": 1.8}
    tables = closed(
        "D2Q9", [9, 8], [{"name": "free_slip", "where": ["y-", "y+"]}], layout={"name": layout},
        body=[{"label": "disc", "shape": disc, "boundary": {"name": name}}],
        initial={"u": ["0.02*cos(2*pi*x/9)", "0.01*sin(pi*y/8)"]},
        output=[{"name": "body_forces", "every": 1}],
    )  # fmt: skip
    tables["domain"]["periodic"] = [True, False]
    cluster = Cluster(tables, 2).start()

    def along() -> float:
        columns, sums = cluster.sums()
        return sums.sum(axis=0)[columns.index("momentum_x")]

    for _ in range(3):
        before = along()
        force = np.concatenate(cluster.each(by_plane)).sum(axis=(0, 1))[0]
        cluster.run(1)
        assert abs(along() - before + force) < 1e-15 < abs(force)

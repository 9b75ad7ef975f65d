"""Lattices that leave out every other node: positions, walls, differences, files, refusals."""

from fractions import Fraction

import h5py
import numpy as np
import pytest
from support.findings import warnings_of
from support.settings import tables
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, make, names
from mpilbm.outputs.images import filled
from mpilbm.parallel.ranks import Serial
from mpilbm.parallel.slabs import split
from mpilbm.physics.lattices import Lattice, paired
from mpilbm.run.run import run
from mpilbm.solids import build

STAGGERED = [name for name in names("lattices") if find("lattices", name).staggered]
over_lattices = pytest.mark.parametrize("lattice", STAGGERED)
MRT = {"collision": {"name": "mrt"}, "precision": PRECISIONS["double"]}


def positions(lattice: str, size) -> tuple:
    """x, y, z of the stored nodes, counted from 0: (nz, ny, nx / 2) each."""
    nx, ny, nz = size
    z, y, x = np.meshgrid(*map(np.arange, (nz, ny, nx)), indexing="ij")
    there = (x + y + z) % 2 == 0
    return tuple(one[there].reshape(nz, ny, nx // 2) for one in (x, y, z))


@over_lattices
def test_formulas_and_masks_meet_the_nodes_where_they_are(lattice, tmp_path):
    size = (8, 5, 7)
    rock = np.random.default_rng(2).random(size[::-1]) < 0.3
    np.save(tmp_path / "rock.npy", rock)
    body = {"mask": str(tmp_path / "rock.npy"), "boundary": {"name": "bounce_back"}}
    u = ["1e-3*x", "1e-3*y", "1e-3*z/nz + 1e-3*nx"]
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+", "z-", "z+"]}
    case = box(lattice, size, domain={"size": list(size)}, body=[body], boundary=[walls], **MRT)
    case["initial"] = {"u": u}
    x, y, z = positions(lattice, size)
    for slabs in (1, 4):
        cluster = Cluster(case, slabs).start()
        solid = np.concatenate([s.solid(0, s.slab.planes) for s in cluster.solvers])
        assert np.array_equal(solid, rock[z, y, x])
        found = cluster.fields("u")["u"][~solid]
        expected = 1e-3 * np.stack([x + 0.5, y + 0.5, (z + 0.5) / 7 + 8], axis=-1)[~solid]
        assert found == pytest.approx(expected, rel=1e-12)
    assert {s.slab.begin % 2 for s in cluster.solvers} == {0, 1}


def linear(lattice, body=()):
    """u = A x in a closed box; the curl of it."""
    A = np.array([[1, 2, -3], [4, -2, 5], [-1, 3, 2]]) * 1e-4
    u = ["+".join(f"{a}*{axis}" for a, axis in zip(row, "xyz", strict=True)) for row in A]
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+", "z-", "z+"]}
    case = box(lattice, (8, 7, 9), domain={"size": [8, 7, 9]}, boundary=[walls], **MRT)
    case |= {"initial": {"u": u}, "body": list(body)}
    return case, np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


@over_lattices
@pytest.mark.parametrize("slabs", [1, 2])
def test_vorticity_of_a_linear_flow_is_exact_also_beside_walls(lattice, slabs):
    """But in the corners of the box, where no diagonal has a neighbour at either end."""
    case, curl = linear(lattice)
    found = Cluster(case, slabs).start().fields("vorticity")["vorticity"]
    exact = np.isclose(found, curl, rtol=1e-9).all(axis=-1)
    x, y, z = positions(lattice, (8, 7, 9))
    corner = ((x == 0) | (x == 7)) & ((y == 0) | (y == 6)) & ((z == 0) | (z == 8))
    assert np.array_equal(exact, ~corner)


@over_lattices
def test_sums_count_the_volume_of_a_cell(lattice):
    cluster = Cluster(box(lattice, (6, 4, 8), **MRT, initial={"rho": 1.5})).start()
    columns, planes = cluster.sums()
    assert planes[:, columns.index("mass")].sum() == pytest.approx(1.5 * 6 * 4 * 8, rel=1e-14)
    case, curl = linear(lattice)
    columns, planes = Cluster(case).start().sums()
    inner = planes[3, columns.index("enstrophy")] / (8 * 7)
    assert inner == pytest.approx(np.dot(curl, curl) / 2, rel=1e-9)


def channel(s_m: float, nu: float, H=9, U=0.02) -> dict:
    case = box("D3Q13", (2, 2, H), **MRT, fluid={"viscosity": nu})
    case["collision"] = {"name": "mrt", "s_m": s_m, "equilibrium": {"name": "incompressible"}}
    case["domain"] = {"size": [2, 2, H], "periodic": [True, True, False]}
    case["boundary"] = [{"name": "bounce_back", "where": ["z-", "z+"]}]
    case["force"] = {"name": "guo", "value": [8 * nu * U / H**2, 0, 0]}
    case["initial"] = {"u": [f"4*{U}*z*({H}-z)/{H}**2", 0, 0]}
    return case


@pytest.mark.parametrize("nu", [0.05, 0.2])
def test_half_way_walls_are_exact_at_one_product_of_the_rates(nu):
    """(1/s_nu_xy - 1/2) (1/s_m - 1/2) = 1/4, whatever the viscosity."""
    H = 9
    z, steps = np.arange(H) + 0.5, round(2 * H**2 / nu)
    u = Cluster(channel(1 / (1 / 4 / (2 * nu) + 0.5), nu)).start().run(steps).fields("u")["u"]
    assert u[..., 0].mean(axis=(1, 2)) == pytest.approx(4 * 0.02 * z * (H - z) / H**2, rel=1e-9)


def duct(lattice, axis: int, sides, nu=0.1, **more) -> np.ndarray:
    """A force along an axis between four walls, once the flow is steady: u across the duct."""
    across = [k for k in range(3) if k != axis]
    size, F = [2, 2, 2], [0.0, 0.0, 0.0]
    for k, n in zip(across, sides, strict=True):
        size[k] = n
    F[axis] = 8 * nu * 0.02 / min(sides) ** 2
    periodic = [k == axis for k in range(3)]
    faces = [f"{'xyz'[k]}{side}" for k in across for side in "-+"]
    case = box(lattice, size, domain={"size": size, "periodic": periodic},
               boundary=[{"name": "bounce_back", "where": faces}],
               force={"name": "guo", "value": F}, fluid={"viscosity": nu}, initial={})  # fmt: skip
    case |= {"precision": PRECISIONS["double"]} | more
    cluster = Cluster(case).start().run(1200)
    u = cluster.fields("u")["u"][..., axis]
    if cluster.case.lattice.staggered:
        x, y, z = positions(lattice, size)
        stored, u = u, np.full(size[::-1], np.nan)
        u[z, y, x] = stored
    return np.nanmean(u, axis=2 - axis)


@over_lattices
def test_a_duct_is_that_of_another_lattice(lattice):
    """The same along the axes; 1 % from the other at 8 cells across, as half-way walls are."""
    sides = (12, 8)
    other = duct("D3Q19", 2, sides, collision={"name": "trt"})
    found = [duct(lattice, axis, sides, collision={"name": "mrt"}) for axis in (1, 2)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert np.abs(found[1] - other).max() < 0.015 * other.max()


@over_lattices
@pytest.mark.parametrize(("ny", "priority"), [(6, 0), (7, 1), (7, 0)])
def test_a_lid_with_ends_of_an_odd_number_of_nodes_is_reported(lattice, ny, priority):
    """The mass drifts exactly in the case in which the check says so."""
    lid = {"name": "bounce_back", "where": ["z+"], "velocity": [0.05, 0, 0], "priority": priority}
    walls = {"name": "bounce_back", "where": ["x-", "x+", "y-", "y+", "z-"]}
    size = (8, ny, 8)
    case = box(lattice, size, domain={"size": list(size)}, boundary=[lid, walls], **MRT)
    cluster = Cluster(case | {"initial": {"u": [0, 0, 0]}}).start()
    columns, before = cluster.sums()
    change = (cluster.run(50).sums()[1] - before)[:, columns.index("mass")].sum()
    drifts = (ny, priority) == (7, 0)
    found = [each for each in warnings_of(cluster.case) if "so that the mass drifts" in each]
    assert len(found) == drifts
    assert (abs(change) > 0.1) == drifts
    assert not found or "boundary.0.priority: the ends" in found[0]


@over_lattices
def test_mass_stays_in_a_closed_box(lattice):
    case = tables(lattice, "ab", "mrt", "walls", "double")
    cluster = Cluster(case).start()
    columns, before = cluster.sums()
    mass = before[:, columns.index("mass")].sum()
    after = cluster.run(500).sums()[1]
    assert after[:, columns.index("mass")].sum() == pytest.approx(mass, rel=1e-13)
    assert np.abs(cluster.fields("u")["u"]).max() > 0.01


@over_lattices
@pytest.mark.parametrize(("before", "after"), [("ab", "esopull"), ("esopull", "aa")])
def test_restart_does_not_show(lattice, before, after):
    case = [tables(lattice, name, "mrt", "walls", "single") for name in (before, after)]
    whole = Cluster(case[0]).start().run(9).state()
    half = Cluster(case[0], 3).start().run(4).state()
    assert np.array_equal(Cluster(case[1], 4).restore(half, 4).run(5).state(), whole)


@over_lattices
def test_filled_planes(lattice):
    """Linear fields between walls and solids, exactly; constants everywhere but in solids."""
    one, size = make("lattices", lattice), (8, 6, 3)
    x, y, z = positions(lattice, size)
    plane, row, column = np.ogrid[:3, :6, :8]
    solid = np.zeros(x.shape, bool)
    values = 2.0 * x - y + 5 * z
    full, blocked = filled(one, values, solid, 0, (False, False))
    expected = 2.0 * column - row + 5 * plane
    assert np.array_equal(full[:, :, 1:-1], expected[:, :, 1:-1])
    sides = full[:, 1:-1, [0, -1]] - expected[:, 1:-1, [0, -1]]
    assert not sides.any()  # from the rows beside
    assert not blocked.any()
    for begin in (0, 1, 2):  # a plane alone
        part, _ = filled(one, values[begin:][:1], solid[:1], begin, (False, False))
        assert np.array_equal(part, full[begin : begin + 1])
    solid = (x > 2) & (x < 7)
    vector = np.where(solid[..., None], 0, np.array([1.0, 2.0]))
    full, blocked = filled(one, vector, solid, 0, (True, True))
    assert np.array_equal(blocked, np.broadcast_to((column > 2) & (column < 7), blocked.shape))
    assert np.array_equal(full, np.where(blocked[..., None], 0, np.array([1.0, 2.0])))


@over_lattices
def test_files_of_a_run(lattice, tmp_path):
    outputs = [{"name": "snapshot", "every": 4, "fields": ["rho", "u", "vorticity"]},
               {"name": "checkpoint", "every": 4}, {"name": "monitor", "every": 2}]  # fmt: skip
    case = tables(lattice, "aa", "mrt", "walls", "single", output=outputs)
    case |= {"run": {"steps": 4}, "backend": {"name": "cpu"}}
    nx, ny, nz = case["domain"]["size"]
    run(parse_case(case, "flow.toml"), Serial(), tmp_path)
    state = Cluster(case).start().run(4)
    with h5py.File(tmp_path / "checkpoint_000000004.h5") as file:
        assert file["fluid/f"].shape == (nz, make("lattices", lattice).Q, ny, nx // 2)
    with h5py.File(tmp_path / "snapshot_000000004.vtkhdf") as file:
        cells = file["VTKHDF/CellData"]
        assert {cells[name].shape[:3] for name in cells} == {(nz, ny, nx)}
        x, y, z = positions(lattice, (nx, ny, nz))
        for name, values in state.fields("rho", "u", "vorticity").items():
            assert np.array_equal(cells[name][...][z, y, x], values)
        assert (cells["solid"][...][z, y, x] == state.solvers[0].solid(0, nz)).all()
        assert np.isfinite(cells["u"][...]).all()


@over_lattices
@pytest.mark.parametrize(
    ("size", "periodic", "axes"),
    [([7, 5, 8], [False, False, True], "x"), ([8, 5, 7], [False, True, True], "yz")],
)
def test_rows_that_do_not_close_are_refused(lattice, size, periodic, axes):
    case = box(lattice, size, **MRT)
    case["domain"] = {"size": size, "periodic": periodic}
    faces = [f"{axis}{side}" for axis, p in zip("xyz", periodic, strict=True) if not p
             for side in "-+"]  # fmt: skip
    case["boundary"] = [{"name": "bounce_back", "where": faces}] if faces else []
    with pytest.raises(CaseError) as error:
        parse_case(case, "odd.toml")
    assert len(error.value.problems) == len(axes)
    for axis, line in zip(axes, error.value.problems, strict=True):
        n = size["xyz".index(axis)]
        assert f"has {n} along {axis}; allowed: even numbers" in line
        assert f"use {n - 1} or {n + 1}" in line


@over_lattices
def test_what_is_not_defined_is_refused_with_what_is(lattice):
    for layout in names("layouts"):
        case = box(lattice, **MRT, layout={"name": layout})
        if find("layouts", layout).dense:
            parse_case(case, "box.toml")
            continue
        with pytest.raises(
            CaseError, match=f"'{layout}' is not defined on {lattice}, .*layouts: aa"
        ):
            parse_case(case, "box.toml")
    with pytest.raises(CaseError, match="bgk needs a lattice isotropic to order 4"):
        parse_case(box(lattice, collision={"name": "bgk"}), "box.toml")


def test_links_lead_to_stored_nodes():
    c, w = paired((1, 0, 0), (0, 1, 0), (0, 0, 1)), (Fraction(1, 4), *[Fraction(1, 8)] * 6)
    data = {"c": c, "w": w, "isotropy": 2}
    assert type("Right", (Lattice,), data).Q == 7
    with pytest.raises(ValueError, match="not stored"):
        type("Wrong", (Lattice,), data | {"staggered": True})


@over_lattices
def test_planes_of_both_parities_have_their_own_links(lattice):
    """A slab that begins at an odd plane has the links that the whole box has there."""
    case = parse_case(tables(lattice, "ab", "mrt", "walls", "single"), "box.toml")
    case = case.model_copy(update={"bodies": ()})
    whole = build.build(case, *split(case.shape, 1, False))
    parts = [build.build(case, slab) for slab in split(case.shape, 4, False)]
    for k, entries in enumerate(whole.lists):
        joined = np.concatenate([part.lists[k].links.bits for part in parts])
        assert np.array_equal(joined, entries.links.bits)
    for name in ("flags", "solid"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole, name))

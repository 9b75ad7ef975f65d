"""Sheets thinner than a cell: which links they cut, and the flow beside them.

More than 20 s: a dozen kernel texts, and flows until they are steady.
"""

import numpy as np
import pytest
import trimesh
from support.body_forces import sample
from support.slabs import PRECISIONS, Cluster, box
from support.surfaces import write

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.slabs import split
from mpilbm.solids import build, diagnose, geometry_findings
from mpilbm.solids.entry_list import Writes
from mpilbm.solids.missing_links import owned_links
from mpilbm.solids.shapes import Flow
from mpilbm.solids.solid_cells import padded_ids
from mpilbm.solids.staging import split_by_writes

DENSE = ("ab", "aa", "esopull", "moments")
HALF_WAY, CURVED = {"name": "bounce_back"}, {"name": "interpolated"}


def plate(folder, normal=(0, 1, 0), side=100.0) -> str:
    """The file of a square of two triangles around the origin, across a normal."""
    n = np.array(normal) / np.linalg.norm(normal)
    a = np.cross(n, [1, 0, 0] if abs(n[0]) < 0.9 else [0, 1, 0])
    a /= np.linalg.norm(a)
    b = np.cross(n, a)
    corners = [side * (p * a + q * b) for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    write(folder / "plate.stl", corners, [[0, 1, 2], [0, 2, 3]])
    return str(folder / "plate.stl")


def sheet(file, at, boundary=HALF_WAY, **keys) -> dict:
    shape = {"name": "mesh", "file": file, "scale": 1, "at": at, "thin": True, "anchor": "origin"}
    return {"label": "sheet", "shape": shape | keys, "boundary": boundary}


def cut_links(case, slabs=1) -> dict:
    """{(global cell, direction)} of all slabs, and the owner's body."""
    found = {}
    for slab in split(case.shape, slabs, case.domain.periodic[-1]):
        ownership = owned_links(case, slab, padded_ids(case, slab))
        entry, i = ownership.cut.unpack()
        cells = ownership.cells[entry] + slab.begin * case.shape[1] * case.shape[2]
        bodies = [ownership.owners[o].body for o in ownership.owner[entry]]
        found |= dict(zip(zip(cells.tolist(), i.tolist(), strict=True), bodies, strict=True))
    return found


def require_pairs(case, found) -> None:
    """Every cut link is cut from both sides."""
    planes, rows, nx = case.shape
    lattice = case.lattice
    for cell, i in found:
        dp, dr, dx = lattice.offset(i)
        plane, row, k = np.unravel_index(cell, case.shape)
        x = (lattice.x(plane, row, k) - dx) % (nx * lattice.volume)
        at = (plane - dp) % planes, (row - dr) % rows, x // lattice.volume
        assert (int(np.ravel_multi_index(at, case.shape)), lattice.opp[i]) in found


PLANES = {
    "between": ((0, 1, 0), 5.2),
    "on cell centres": ((0, 1, 0), 5.5),
    "on faces": ((0, 1, 0), 5.0),
    "oblique": ((0.3, 1, -0.2), 5.3),
    "diagonal through centres": ((1, 1, 0), 5.5),
    "across a periodic face": ((0, 1, 0), 0.2),
    "on the centres of the first row": ((0, 1, 0), 0.5),
    "at a periodic face": ((0, 1, 0), 0.0),
}


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27", "D3Q13"])
@pytest.mark.parametrize("name", PLANES)
def test_a_plane_cuts_the_links_between_its_sides(tmp_path, lattice, name):
    """Both directions of a link are cut, on any number of slabs; a cell is on one of the sides."""
    normal, y = PLANES[name]
    D = int(lattice[1])
    if D == 2:
        normal = (*normal[:2], 0)
    body = sheet(plate(tmp_path, normal), [5.5, y, 5.5][:D], scale=0.03 if name == "oblique" else 1)
    tables = box(lattice, [10, 10, 10][:D], body=[body],
                 collision={"name": "mrt" if lattice == "D3Q13" else "trt"})  # fmt: skip
    case = parse_case(tables, "a.toml")
    found = cut_links(case)
    assert found
    require_pairs(case, found)
    assert cut_links(case, 3) == found
    assert not padded_ids(case, split(case.shape, 1, True)[0]).any()


def test_a_plane_on_cell_centres_is_on_one_side_of_them(tmp_path):
    """The row of these cells belongs to the upper side: 3 links of 10 cells from below, 3 back."""
    body = sheet(plate(tmp_path), [5.5, 5.5])
    case = parse_case(box("D2Q9", [10, 10], body=[body]), "a.toml")
    assert {cell // 10 for cell, _ in cut_links(case)} == {4, 5}
    assert len(cut_links(case)) == 60


def test_a_cut_link_of_a_pressure_jump_belongs_to_the_sheet(tmp_path):
    """A plate along the flow, through the face with the jump."""
    jump = [{"name": "pressure_jump", "where": ["x-", "x+"], "rho_jump": 0.001}]
    body = sheet(plate(tmp_path), [5.5, 5.2])
    case = parse_case(box("D2Q9", [10, 10], body=[body], boundary=jump), "a.toml")
    slab = split(case.shape, 1, True)[0]
    ownership = owned_links(case, slab, padded_ids(case, slab))
    cells, i = ownership.missing.unpack()
    links = list(zip(ownership.cells[cells].tolist(), i.tolist(), strict=True))
    assert len(set(links)) == len(links)
    assert len(cut_links(case)) == 60
    assert len(links) == 60 + 60 - 4  # of the jump 3 for 20 cells, without 4 diagonal ones


def couette(file, y, boundary, layout="ab", n=9, U=0.02) -> dict:
    """A plate at rest between walls that move with U and -U."""
    walls = [
        {"name": "bounce_back", "where": [face], "velocity": [u, 0]}
        for face, u in (("y-", U), ("y+", -U))
    ]
    domain = {"size": [3, n], "periodic": [True, False]}
    return box("D2Q9", [3, n], body=[sheet(file, [1.5, y], boundary)], boundary=walls,
               domain=domain, layout={"name": layout}, precision=PRECISIONS["double"],
               fluid={"viscosity": 1 / 6}, collision={"name": "regularized"},
               initial={"rho": 1, "u": [0.0, 0.0]}, output=FORCES)  # fmt: skip


FORCES = [{"name": "body_forces", "every": 1}]
CENTRAL = {"name": "central_linear"}


@pytest.mark.parametrize(
    ("y", "boundary"),
    [(4.0, HALF_WAY), (4.0, CURVED), (4.2, CURVED), (4.5, CURVED), (4.9, CURVED),
     (4.2, {"name": "interpolated", "order": 2}), (4.2, CENTRAL)],
)  # fmt: skip
def test_couette_flow_on_both_sides_of_a_plate(tmp_path, y, boundary):
    """Interpolated walls are exact for linear profiles, half-way walls at y = 4.

    The drag is that of the shear stress nu du/dy on both sides, which the plate takes from them.
    """
    n, U = 9, 0.02
    cluster = Cluster(couette(plate(tmp_path), y, boundary)).start().run(2500)
    at = np.arange(n) + 0.5
    exact = np.where(at < y, U * (y - at) / y, -U * (at - y) / (n - y))
    u = cluster.fields("u")["u"]
    np.testing.assert_allclose(u_x(u), exact, rtol=0, atol=1e-12)
    (force,) = sample(cluster)
    drag = 3 / 6 * (U / y - U / (n - y))
    np.testing.assert_allclose(force[0], drag, rtol=1e-9, atol=1e-14)


def u_x(u) -> np.ndarray:
    """u_x along y at the first x."""
    return u[:, 0, 0, 0]


@pytest.mark.parametrize("y", [5.0, 5.2])
def test_a_plate_along_a_driven_flow_takes_the_whole_force(tmp_path, y):
    """In a periodic box the plate and its images are a channel of 10 cells."""
    g, nu = 1e-6, 1 / 6
    tables = box("D2Q9", [3, 10], body=[sheet(plate(tmp_path), [1.5, y])], output=FORCES,
                 force={"name": "guo", "value": [g, 0]}, precision=PRECISIONS["double"],
                 fluid={"viscosity": nu}, initial={"rho": 1, "u": [0.0, 0.0]},
                 collision={"name": "trt"})  # fmt: skip
    cluster = Cluster(tables).start().run(6000)
    (force,) = sample(cluster)
    np.testing.assert_allclose(force[:2], [g * 30, 0], rtol=1e-9, atol=1e-15)
    across = (np.arange(10) + 0.5 - 5) % 10  # a half-way wall is at y = 5
    exact = g / (2 * nu) * across * (10 - across)
    np.testing.assert_allclose(u_x(cluster.fields("u")["u"]), exact, rtol=1e-9)


def shell(folder) -> str:
    """Two nested spheres of the radii 3.3 and 3.1."""
    outer, inner = (trimesh.creation.icosphere(3, r) for r in (3.3, 3.1))
    trimesh.util.concatenate(outer, inner).export(folder / "shell.stl")
    return str(folder / "shell.stl")


def in_shell(layout: str, file: str, lattice: str, boundary=HALF_WAY, precision="double") -> dict:
    D = int(lattice[1])
    body = sheet(file, [5.1, 4.7, 5.2][:D], boundary, anchor="centre")
    return box(lattice, [10, 9, 11][:D], body=[body], layout={"name": layout}, output=FORCES,
               collision={"name": "regularized"}, precision=PRECISIONS[precision])  # fmt: skip


@pytest.mark.parametrize(
    ("lattice", "boundary"),
    [
        pytest.param("D2Q9", HALF_WAY, id="half-way"),
        pytest.param("D2Q9", CURVED, id="linear"),
        pytest.param("D2Q9", {"name": "interpolated", "order": 2}, id="quadratic"),
        pytest.param("D3Q19", CURVED, id="linear in 3D"),
    ],
)
def test_a_shell_has_the_same_bits_in_all_layouts_and_slabs(tmp_path, lattice, boundary):
    """After 11 steps: density, velocity, and the force on the shell."""
    file, states = shell(tmp_path), {}
    for layout in DENSE:
        for slabs in (1, 3):
            cluster = Cluster(in_shell(layout, file, lattice, boundary), slabs).start().run(11)
            fields = cluster.fields("rho", "u")
            states[layout, slabs] = fields["rho"], fields["u"], sample(cluster)
    for (layout, _), found in states.items():
        for values, wanted in zip(found, states["ab", 1], strict=True):
            if layout == "moments":  # stores other values
                np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-14)
            else:
                assert np.array_equal(values, wanted)
    for one, three in zip(states["moments", 1], states["moments", 3], strict=True):
        assert np.array_equal(one, three)


@pytest.mark.parametrize("layout", DENSE)
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_nothing_passes_a_shell_thinner_than_a_cell(tmp_path, layout, lattice):
    """The mass inside stays the same while the flow outside moves; without thin it changes."""
    tables, changes = in_shell(layout, shell(tmp_path), lattice), []
    D = int(lattice[1])
    for thin in (True, False):
        tables["body"][0]["shape"]["thin"] = thin
        cluster = Cluster(tables, 2).start()
        planes, rows, nx = cluster.case.shape
        at = [np.arange(n) + 0.5 for n in ((planes, rows, nx) if D == 3 else (planes, nx))]
        r2 = sum((a - c) ** 2 for a, c in zip(
            np.meshgrid(*at, indexing="ij"), [5.2, 4.7, 5.1][3 - D:], strict=True))  # fmt: skip
        inside = r2.reshape(planes, rows, nx) < 3.2**2
        before, after = (
            (cluster.run(steps).fields("rho")["rho"] * inside).sum() for steps in (0, 40)
        )
        changes.append(abs(after - before))
    assert changes[0] < 1e-12
    assert changes[1] > 1e-4


def test_a_thin_box_cuts_the_links_that_a_plate_in_it_cuts(tmp_path):
    """The box is 0.2 cells thick, and lies between the cell centres."""
    flat = sheet(plate(tmp_path, side=3.0), [5.5, 5.0, 5.5])
    trimesh.creation.box((6, 0.2, 6)).export(tmp_path / "box.stl")
    full = sheet(str(tmp_path / "box.stl"), [5.5, 5.0, 5.5])
    tables = [box("D3Q19", [11, 10, 11], body=[body]) for body in (flat, full)]
    found = [cut_links(parse_case(each, "a.toml")) for each in tables]
    assert len(found[0]) > 6 * 6 * 2
    assert found[1].keys() >= found[0].keys()
    assert len(found[1]) - len(found[0]) < 60  # diagonal links that pass the rim


def test_links_across_another_sheet_are_not_interpolated(tmp_path):
    """Cells with a plate on both sides use q = 1/2, as between two solid cells."""
    file = plate(tmp_path)
    two = [sheet(file, [5.5, y], CURVED) | {"label": f"s{k}"} for k, y in enumerate((5.2, 6.3))]
    case = parse_case(box("D2Q9", [10, 10], body=two), "a.toml")
    slab = split(case.shape, 1, True)[0]
    (entries,) = build.build(case, slab).lists
    q = entries.per_link.distance
    cell, _ = entries.links.unpack()
    between = entries.cells[cell] // 10 == 5
    assert (q[between] == 0.5).sum() == 30  # the near side, q = 0.3 from below and 0.2 from above
    order2 = [each | {"boundary": {"name": "interpolated", "order": 2}} for each in two]
    order2[1]["shape"] = order2[1]["shape"] | {"at": [5.5, 7.3]}
    case = parse_case(box("D2Q9", [10, 10], body=order2), "a.toml")
    (entries,) = build.build(case, slab).lists
    cell, _ = entries.links.unpack()
    between = np.isin(entries.cells[cell] // 10, (5, 6))
    assert entries.per_link.linear[between].all()
    assert not entries.per_link.linear.all()


def test_cut_links_are_staged(tmp_path):
    """Both ends of such a link share their places in memory, so no end is written directly."""
    body = sheet(plate(tmp_path), [5.5, 0.2])
    ball = {"name": "sphere", "centre": [5, 5], "radius": 2}
    case = parse_case(
        box("D2Q9", [10, 10], body=[body | {"label": "b"}, body | {"shape": ball}]), "a.toml"
    )
    slab = split(case.shape, 1, True)[0]
    lists = split_by_writes(case, slab, build.build(case, slab).lists)
    cut = {each.writes: (each.links & each.cut).total() for each in lists}
    assert cut == {Writes.STAGED: 60, Writes.DIRECT: 0}


def refused(tables) -> str:
    try:
        geometry_findings.refuse(parse_case(tables, "a.toml"), [])
    except CaseError as error:
        return str(error)
    return ""


def test_what_sheets_do_not_support_is_refused(tmp_path):
    file = plate(tmp_path)
    one = sheet(file, [5.5, 5.2])
    text = refused(box("D2Q9", [10, 10], body=[one], layout={"name": "indirect"}))
    assert "'indirect' has no links between fluid cells that sheets (thin = true) cut" in text
    text = refused(box("D2Q9", [10, 10], body=[one], coupling={"name": "shan_chen", "G": -5.0}))
    assert "has thin = true with coupled fluids" in text
    sides = [{"name": "free_slip", "where": ["x-"]}, {"name": "bounce_back", "where": ["x+"]}]
    domain = {"size": [10, 10], "periodic": [False, True]}
    text = refused(box("D2Q9", [10, 10], body=[one], boundary=sides, domain=domain))
    assert "has thin = true and reaches from x = -94.5 to 105.5, to the free-slip face 'x-'" in text
    text = refused(box("D2Q9", [10, 10], body=[sheet(file, [5.5, 5.2], invert=True)]))
    assert "is open, so that it has no outside to invert" in text
    text = refused(box("D2Q9", [10, 10], body=[sheet(file, [5.5, 5.2], thin=False)]))
    assert "or thin = true if it is a sheet" in text
    disc = {"name": "sphere", "centre": [5, 5], "radius": 2}
    cut = one | {"shape": {"name": "difference", "of": [one["shape"], disc]}}
    text = refused(box("D2Q9", [10, 10], body=[cut]))
    assert "of.0: has sheets (thin = true), which a difference cannot cut" in text


def test_a_union_keeps_the_sheets_of_its_parts(tmp_path):
    one = sheet(plate(tmp_path), [5.5, 5.2])
    disc = {"name": "sphere", "centre": [5, 2], "radius": 1.2}
    both = one | {"shape": {"name": "union", "of": [one["shape"], disc]}}
    found = [cut_links(parse_case(box("D2Q9", [10, 10], body=[b]), "a.toml")) for b in (one, both)]
    assert found[0] == found[1]


def test_a_sheet_without_cells_is_no_finding(tmp_path):
    """A plate is no lost body, and neither refused nor reported as thin."""
    case = parse_case(box("D2Q9", [10, 10], body=[sheet(plate(tmp_path), [5.5, 5.2])]), "a.toml")
    slab = split(case.shape, 1, True)[0]
    parts = []
    build.build(case, slab, look=lambda *given: parts.append(diagnose.find(*given)))
    geometry_findings.refuse(case, parts)
    assert not [*geometry_findings.lost_bodies(case, parts)]
    lines = [str(each) for each in case.bodies[0].shape.findings(case, "w", Flow(0.0, None))]
    assert len(lines) == 1
    assert "the sides of the bounding box are" in lines[0]

"""What is reported about surfaces: thin and overlapping parts, resolution, blockage, y+."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from support.surfaces import case_of, mesh, write, write_ball

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solids.shapes import Flow
from mpilbm.solids.surfaces.findings import y_plus

SIZE = (40, 32, 32)


def found(shape, folder, size=SIZE, flow=None, viscosity=0.01) -> list[str]:
    fluids = [type("Fluid", (), {"viscosity": viscosity})]
    case = case_of(folder, size, fluids=fluids)
    return [each.line for each in shape.findings(case, "body.a.shape", flow or Flow(0, None))]


def plate(folder, thickness, turn=0.0, **keys):
    trimesh.creation.box((thickness, 16, 16)).export(folder / "plate.stl")
    keys = {"file": "plate.stl", "scale": 1, "at": [16, 16, 16]} | keys
    return mesh(folder, SIZE, rotate=[0, 0, turn], **keys)


def test_a_smooth_body_has_no_thin_parts(tmp_path):
    write_ball(tmp_path / "ball.stl", 4)
    ball = mesh(tmp_path, SIZE, file="ball.stl", scale=8.2, at=[16.1, 16.2, 16.3])
    assert ball.problems_in_cells(case_of(tmp_path, SIZE)) == []
    (only,) = found(ball, tmp_path)
    assert only.startswith("note: body.a.shape: the sides of the bounding box are 16.4 x 16.4 x ")


@pytest.mark.parametrize("turn", [0.0, 37.0])
def test_sheets_are_refused_and_thin_plates_reported(tmp_path, turn):
    case = case_of(tmp_path, SIZE)
    (problem,) = plate(tmp_path, 0.3, turn).problems_in_cells(case)
    assert problem.startswith("is a sheet: at ")
    assert "thinner than one cell and between the centres, the first at x=" in problem
    thin = plate(tmp_path, 1.5, turn)
    assert thin.problems_in_cells(case) == []
    lines = found(thin, tmp_path)
    assert any(line.startswith("warning: body.a.shape: thinner than 2 cells at") for line in lines)
    assert not plate(tmp_path, 2.2, turn).problems_in_cells(case)
    assert not any("thinner" in line for line in found(plate(tmp_path, 2.2, turn), tmp_path))


def test_a_slot_thinner_than_a_cell_is_no_solid_sheet(tmp_path):
    """The fluid is inside: the surface of a slot has no solid on its inner side."""
    slot = plate(tmp_path, 0.3, invert=True)
    assert slot.problems_in_cells(case_of(tmp_path, SIZE)) == []


def test_a_fin_is_serious(tmp_path):
    body = trimesh.util.concatenate(
        trimesh.creation.box((24, 16, 12)),
        trimesh.creation.box((0.4, 4, 4), trimesh.transformations.translation_matrix([0, 11, 0])),
    )
    body.export(tmp_path / "fin.stl")
    fin = mesh(tmp_path, SIZE, file="fin.stl", scale=1, at=[20, 16, 16])
    assert fin.problems_in_cells(case_of(tmp_path, SIZE)) == []
    first = found(fin, tmp_path)[0]
    assert first.startswith("serious: body.a.shape: at 16 places of ")
    assert "the fluid passes there" in first


def two_boxes(apart):
    second = trimesh.creation.box((8, 8, 8))
    second.apply_translation([apart, 0, 0])
    return trimesh.util.concatenate(trimesh.creation.box((8, 8, 8)), second)


def test_overlapping_parts_are_counted(tmp_path):
    for apart, cells in ((6, 128), (9, 0)):
        two_boxes(apart).export(tmp_path / "two.stl")
        two = mesh(tmp_path, SIZE, file="two.stl", scale=1, at=[20, 16, 16])
        lines = [line for line in found(two, tmp_path) if "overlap" in line]
        assert bool(lines) == bool(cells)
        if cells:
            assert lines[0].startswith("serious: body.a.shape: parts of the surface overlap")
            assert "128 cells in an even number of parts, the first at x=19.5, y=12.5" in lines[0]


def test_mixed_orientations_are_a_note(tmp_path):
    box = trimesh.creation.box((8, 8, 8))
    faces = np.array(box.faces)
    faces[::2] = faces[::2, ::-1]
    write(tmp_path / "mixed.stl", box.vertices, faces)
    mixed = mesh(tmp_path, SIZE, file="mixed.stl", scale=1, at=[20, 16, 16])
    assert found(mixed, tmp_path)[0].startswith("note: body.a.shape: the triangles have no common")


def test_blockage_resolution_and_y_plus(tmp_path):
    trimesh.creation.box((16, 4, 8)).export(tmp_path / "box.stl")
    box = mesh(tmp_path, SIZE, file="box.stl", scale=1, at=[20, 16, 16])
    lines = found(box, tmp_path, flow=Flow(0.05, 0))
    assert lines[0].startswith(
        "warning: body.a.shape: the sides of the bounding box are 16 x 4 x 8"
    )
    assert "the smallest has fewer than 8 cells" in lines[0]
    assert lines[1] == ("note: body.a.shape: the frontal area across x is 32 cells^2, 3.12% of the "
                        "cross-section of the box")  # fmt: skip
    assert lines[2].startswith("note: body.a.shape: y+ of the first cell is about 0.48")
    assert lines[2].endswith("Reynolds number 80")
    blocked = found(box, tmp_path, flow=Flow(0.05, 1))[1]
    assert blocked.startswith("warning: body.a.shape: the frontal area across y is 128 cells^2")
    fast = found(box, tmp_path, flow=Flow(0.1, 0), viscosity=1e-6)[2]
    assert fast.startswith("warning: body.a.shape: y+ of the first cell is about 21")
    pipe = mesh(tmp_path, SIZE, file="box.stl", scale=1, at=[20, 16, 16], invert=True)
    assert len(found(pipe, tmp_path, flow=Flow(0.05, 0))) == 1


def test_y_plus_of_a_flat_plate():
    """U = 0.1, L = 100, nu = 1e-5: Re = 1e6, c_f = 0.026 / 1e6^(1/7) = 0.0036127."""
    assert y_plus(0.1, 100, 1e-5) == pytest.approx(0.1 * np.sqrt(0.0036127 / 2) * 0.5e5, rel=1e-4)
    assert y_plus(0.1, 10, 1e-4) == pytest.approx(0.1 * np.sqrt(0.00664 / 2) * 5e3, rel=1e-12)


def test_projected_areas(tmp_path):
    write_ball(tmp_path / "ball.stl", 5)
    ball = mesh(tmp_path, SIZE, file="ball.stl", scale=8.2, at=[16.1, 16.2, 16.3])
    closed = SimpleNamespace(size=SIZE, periodic=(False,) * 3)
    for axis in range(3):
        assert ball.frontal_area(axis, closed) == pytest.approx(np.pi * 8.2**2, rel=1e-3)
    half = SimpleNamespace(size=(40, 16.2, 32), periodic=(False,) * 3)
    assert ball.frontal_area(0, half) == pytest.approx(np.pi * 8.2**2 / 2, rel=1e-3)
    half = SimpleNamespace(
        size=(40, 17, 32), periodic=(True,) * 3
    )  # the other half is at the opposite face
    assert ball.frontal_area(0, half) == pytest.approx(np.pi * 8.2**2, rel=1e-3)
    flat = mesh(tmp_path, SIZE[:2], file="ball.stl", scale=8.2, at=[16.1, 16.2])
    plane = SimpleNamespace(size=SIZE[:2], periodic=(False,) * 2)
    assert flat.frontal_area(1, plane) == pytest.approx(2 * 8.2, rel=1e-3)
    sphere = make("shapes", {"name": "sphere", "centre": [16, 16, 16], "radius": 8.2})
    assert sphere.frontal_area(0, closed) == pytest.approx(np.pi * 8.2**2, rel=1e-3)
    corner = sphere.model_copy(update={"centre": (16, 0, 32)})
    assert corner.frontal_area(0, closed) == pytest.approx(np.pi * 8.2**2 / 4, rel=2e-3)
    joined = SimpleNamespace(size=SIZE, periodic=(False, True, True))
    assert corner.frontal_area(0, joined) == pytest.approx(np.pi * 8.2**2, rel=1e-3)
    wall = make("shapes", {"name": "half_space", "point": [8, 0, 0], "normal": [1, 0, 0]})
    assert wall.frontal_area(0, joined) == pytest.approx(32 * 32)


def tables(file, **keys):
    """A wind tunnel with a body."""
    shape = {"name": "mesh", "file": str(file), "scale": 5, "at": [16, 12, 12]} | keys
    inlet = {"name": "zou_he", "where": ["x-"], "velocity": [0.05, 0, 0]}
    return {
        "lattice": {"name": "D3Q19"},
        "domain": {"size": [40, 24, 24], "periodic": [False, True, True]},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "trt"},
        "boundary": [inlet, {"name": "zou_he", "where": ["x+"], "rho": 1.0}],
        "body": [{"label": "a", "shape": shape, "boundary": {"name": "interpolated"}}],
        "run": {"steps": 2},
        "backend": {"name": "cpu"},
    }


def test_check_and_run_report_and_refuse(tmp_path):
    write_ball(tmp_path / "ball.stl")
    case = parse_case(tables(tmp_path / "ball.stl"), tmp_path / "case.toml")
    lines = [each.line for each in plan(case).findings]
    assert any("the frontal area across x is 78." in line for line in lines)
    assert any("y+ of the first cell" in line for line in lines)
    trimesh.creation.box((0.05, 2, 2)).export(tmp_path / "sheet.stl")
    sheet = parse_case(tables(tmp_path / "sheet.stl"), tmp_path / "case.toml")
    for call in (lambda: plan(sheet), lambda: run(sheet, Serial(), tmp_path / "out")):
        with pytest.raises(CaseError, match=r"body.a.shape: is a sheet: at \d+ places of \d+"):
            call()


def test_a_body_beside_the_box_is_refused(tmp_path):
    write_ball(tmp_path / "ball.stl")
    case = parse_case(tables(tmp_path / "ball.stl", at=[60, 12, 12]), tmp_path / "case.toml")
    with pytest.raises(CaseError, match=r"body 'a' from \[55.0, 7.0, 7.0\] to .* outside the box"):
        plan(case)


def test_a_part_of_a_union_reports(tmp_path):
    write_ball(tmp_path / "ball.stl")
    part = {"name": "mesh", "file": "ball.stl", "scale": 1.5, "at": [16, 12, 12]}
    both = make("shapes", {"name": "union", "of": [part, part]}).resolved(case_of(tmp_path, SIZE))
    lines = found(both, tmp_path)
    assert [line.split(":")[1] for line in lines] == [" body.a.shape.of.0", " body.a.shape.of.1"]


def test_a_mesh_of_revolution_may_rotate(tmp_path):
    """The velocity of its flat triangles has a small part through them."""
    trimesh.creation.cylinder(1, 2, sections=48).export(tmp_path / "rotor.stl")
    keys = tables(tmp_path / "rotor.stl")
    spin = {"name": "interpolated", "velocity": ["-0.005*(y-12)", "0.005*(x-16)", 0]}
    keys["body"][0]["boundary"] = spin
    run(parse_case(keys, tmp_path / "case.toml"), Serial(), tmp_path / "out")
    keys["body"][0]["boundary"] = spin | {"velocity": ["0.01", 0, 0]}
    with pytest.raises(CaseError, match="through the surface"):
        run(parse_case(keys, tmp_path / "case.toml"), Serial(), tmp_path / "out2")

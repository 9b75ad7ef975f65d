"""`mpilbm new --template external` and `internal`: a case for a flow in SI, which runs as it is.

More than 20 s: proposals are run, at their own resolution.
"""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support import ROOT
from support.commands import call, refused

from mpilbm import Simulation
from mpilbm.case.case import load_case
from mpilbm.case.case_findings import of_case
from mpilbm.case.velocity_bounds import initial_ranges, largest_speed
from mpilbm.core.units import LENGTH, VELOCITY, VISCOSITY, mach, reynolds
from mpilbm.model.findings import NOTE, WARNING
from mpilbm.model.flow_kinds import flows
from mpilbm.model.limits import stability
from mpilbm.run.preflight.plan import plan
from mpilbm.run.proposal import costs, scheme
from mpilbm.run.proposal.accuracy import BOXES, FREE, ROWS, accuracy_line, wall_line
from mpilbm.run.proposal.resolution import resolution
from mpilbm.run.proposal.scheme import LEAST, MODELLED, MOST, Resolution, body_wall, cells_along

AIR, WATER = 1.5060e-5, 1.0034e-6  # m^2/s at 20 degC
SPHERE = ("--template", "external", "--body", "sphere", "--fluid", "air", "--blockage", "0.3")
PIPE = ("--template", "internal", "--body", "pipe", "--fluid", "water")
DIAMETER = 0.05  # m


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def new(name, *options):
    result = call("new", name, *options)
    assert result.exit_code == 0, result.output
    return load_case(f"{name}.toml")


def sphere(number, *more):
    speed = f"{number * AIR / DIAMETER:.9g} m/s"
    return new("case", *SPHERE, "--length", "5 cm", "--speed", speed, *more)


def pipe(number, *more):
    speed = f"{number * WATER / DIAMETER:.9g} m/s"
    return new("case", *PIPE, "--bore", "50 mm", "--length", "20 cm", "--speed", speed, *more)


@pytest.mark.parametrize("number", [100, 1e4, 1e6])
@pytest.mark.parametrize("flow", [sphere, pipe])
def test_a_proposal_runs(flow, number):
    """Until its ramp is over: up to 3 s, the steps of D3Q27 without optimisation.

    With the layout of CPUs; the text of `moments` takes 8 s of SymPy.
    """
    flow(number, "--cells", "6")
    case = load_case("case.toml", {"layout.name": "auto"})
    given = case.boundaries[0].ramp
    assert 300 < given < 400
    with Simulation(case) as sim:
        sim.run(given + 20)
        speed = np.linalg.norm(sim.field("u"), axis=-1)
    assert 0.05 < speed.max() < 0.15


@pytest.mark.parametrize("number", [100, 1e4, 1e6])
@pytest.mark.parametrize("flow", [sphere, pipe])
def test_the_numbers_are_those_that_were_given(flow, number):
    case = flow(number)
    cells = case.units.to_lattice(DIAMETER, LENGTH)
    speed = case.units.to_lattice(
        number * case.units.to_si(case.fluids[0].viscosity, VISCOSITY) / DIAMETER, VELOCITY
    )
    assert reynolds(case.fluids[0].viscosity, cells, speed) == pytest.approx(number, rel=1e-3)
    fastest = largest_speed(case, initial_ranges(case))[0]
    assert 0.05 < mach(fastest) <= 0.1 * (1 + 1e-6)
    least = 32 if flow is sphere else 20
    assert least <= cells <= 1.02 * MOST
    resolved = Resolution("external" if flow is sphere else "internal", number, cells).walls
    assert (case.bodies[0].boundary.name == "interpolated") == (resolved == "resolved")
    assert bool(case.fluids[0].collision.closure) == (resolved != "resolved")
    assert resolved != ("coarse" if flow is sphere else "modelled")
    assert case.layout.name == ("moments" if resolved == "coarse" else "auto")


@pytest.mark.parametrize("flow", [sphere, pipe])
def test_check_accepts_a_proposal(flow):
    """Without a finding that is more than coarse and curved walls, and with the values kept.

    2 s: `check` writes the kernels, here of the layout of CPUs; the text of `moments` takes 20 s.
    """
    flow(1e4, "--cells", "8")
    report = plan(load_case("case.toml", {"layout.name": "auto"}))
    assert report.runs
    above = [found for found in report.findings if found.severity != NOTE]
    assert {found.where for found in above} <= {"fluid.viscosity", "body.body.boundary"}
    assert all("curved" in each.message for each in above if each.where == "body.body.boundary")
    kept = {line.what: line for line in report.sections["proposal"]}
    assert kept["cell, step"].value == "as given"
    expected = "not measured" if flow is sphere else "not trustworthy"
    assert kept["accuracy"].value.startswith(expected)


def test_the_head_says_what_to_expect():
    sphere(100, "--cells", "32", "--gpu-memory", "0.001")
    lines = Path("case.toml").read_text().partition("\ntitle")[0].splitlines()
    head = " ".join(" ".join(lines).replace("#", " ").split())
    for words in (
        "32.05 along the body", "Re = 100,", "resolved", "c_d 2.331, reference 2.38", "about 3.9%",
        "of 0.001 GB", "GLUPS per GPU: an H100", "fine: central_moment was stable", "0.1",
    ):  # fmt: skip
        assert words in head, words
    assert max(map(len, lines)) <= 100
    assert int(head.partition("GPUs ")[2].split(";")[0]) > 1


def test_a_mesh_above_a_road():
    shutil.copy(ROOT / "cases" / "ahmed.stl", ".")
    Path("sub").mkdir()
    case = new("sub/car", "--template", "external", "--body", "ahmed.stl", "--unit", "mm",
               "--speed", "40 m/s", "--fluid", "air", "--ground", "50 mm",
               "--cells", "32")  # fmt: skip
    lower, upper = case.bodies[0].shape.bounds()
    cell = case.units.cell
    assert lower[2] * cell == pytest.approx(0.05, rel=1e-6)
    assert (upper[0] - lower[0]) * cell == pytest.approx(1.044, rel=1e-3)
    assert flows(case) == ("road",)
    area = case.bodies[0].shape.frontal_area(0, case.domain)
    assert area / np.prod(case.domain.size[1:]) < 0.05
    assert stability(case, case.fluids[0], 0.0577)[1] == "good"


def test_the_manual_shows_what_its_first_command_writes():
    text = (ROOT / "mpilbm/view/manual/proposal.md").read_text()
    shutil.copy(ROOT / "cases" / "ahmed.stl", "car.stl")
    command = re.search(r"^mpilbm (new .*)$", text, re.M)[1]
    assert call(*shlex.split(command)).exit_code == 0
    shown = text.partition("```\n# cells")[2].partition("\n```")[0]
    assert shown in Path("car.toml").read_text()


def test_a_passage_of_a_mesh():
    """An angle of two square bores: the box cuts its openings, solid is beyond its other sides."""
    corners = np.array([(0, 0), (6, 0), (6, 5), (4, 5), (4, 2), (0, 2)]) / 100
    faces = np.array([(0, 1, 4), (0, 4, 5), (1, 2, 4), (2, 3, 4)])
    trimesh.creation.extrude_triangulation(corners, faces, 0.02).export("angle.stl")
    case = new("case", "--template", "internal", "--body", "angle.stl", "--unit", "m",
               "--bore", "2 cm", "--speed", "1 m/s", "--fluid", "water", "--cells", "10",
               "--outlet", "y+")  # fmt: skip
    cell = case.units.cell
    assert cell == pytest.approx(2e-3)
    assert case.domain.size == (30, 25, 12)
    inside = case.bodies[0].shape.inside
    assert not inside(0.5, 6.0, 6.0)
    assert not inside(24.0, 24.5, 6.0)
    assert inside(29.5, 6.0, 6.0)
    assert inside(0.5, 20.0, 6.0)
    assert case.boundaries[1].where == ("y+",)
    with Simulation(load_case("case.toml", {"layout.name": "auto"})) as sim:
        sim.run(2)


def test_a_duct_has_a_wall_model():
    case = new("case", "--template", "internal", "--body", "duct", "--bore", "2 cm",
               "--speed", "2 m/s", "--viscosity", "1e-6 m^2/s", "--density", "998 kg/m^3",
               "--cells", "8")  # fmt: skip
    assert not case.bodies
    assert case.boundaries[-1].name == "wall_model"
    report = plan(case)
    assert not [found for found in report.findings if found.severity != NOTE]
    accuracy = next(x for x in report.sections["proposal"] if x.what == "accuracy")
    assert accuracy.value.startswith("not trustworthy: pressure drop was 1.4 times too large")
    assert case.fluids[0].collision.closure.name == "smagorinsky"
    assert cells_along("internal", 4e4, flat=True) == MODELLED
    assert cells_along("internal", 100, flat=True) == LEAST["internal"]


@pytest.mark.parametrize(
    ("kind", "number", "cells", "flat", "value"),
    [
        ("internal", 5e4, 40, True, "not trustworthy: pressure drop was 1.4 times too large"),
        ("internal", 5000, 40, True, "not measured at this Reynolds number"),
        ("external", 100, 61, False, "about 2.1%, apart from the effect of the sides of the box"),
        ("external", 100, 32, False, "about 3.9%"),
        ("external", 100, 12, False, "not measured with so few cells"),
        ("external", 2000, 60, False, "not measured at this Reynolds number"),
        ("external", 2000, 4, False, "not measured"),
        ("external", 1e6, 128, False, "about 10.0% for a body with edges, such as a car"),
        ("internal", 1500, 25, False, "about 4.8%"),
        ("internal", 100, 20, False, "about 5.3%"),
        ("internal", 9000, 80, False, "not measured at this Reynolds number"),
        ("internal", 2e5, 40, False, "not trustworthy: pressure drop was 4 times too large"),
    ],
)
def test_the_accuracy_is_that_of_a_flow_of_the_same_regime(kind, number, cells, flat, value):
    """The row of laminar pipes says nothing of a turbulent one."""
    assert accuracy_line(Resolution(kind, number, cells, flat)).value.startswith(value)


def test_thin_bodies_are_judged_by_their_shortest_side():
    """A rod of 1 m x 1 cm x 1 cm at Re = 100."""
    trimesh.creation.box((0.01, 0.01, 1)).export("rod.stl")
    options = ("--template", "external", "--body", "rod.stl", "--unit", "m", "--fluid", "water",
               "--speed", "0.1 mm/s")  # fmt: skip
    case = new("rod", *options)
    assert case.units.to_lattice(1, LENGTH) == pytest.approx(MOST)
    head = Path("rod.toml").read_text().partition("\ntitle")[0]
    assert "1.6 cells; across the shortest side of the body; 8 need --cells 800" in head
    assert "not measured with so few cells" in head
    lines = {line.what: line.value for line in plan(case).sections["proposal"]}
    assert lines["accuracy"] == "not measured with so few cells"
    assert cells_along("external", 100, slender=10) == 80
    words = "its shortest side is 0.99 cells; allowed: at least one; give --cells 100 or more"
    assert words in refused("new", "other", *options, "--cells", "99")


def test_a_real_fluid_that_is_compressible_is_named():
    """By `check` of any case, too; the Mach number of the case is 0.1 in all of them."""
    case = sphere(5e5, "--cells", "8", "--ground", "1 mm")
    head = " ".join(Path("case.toml").read_text().partition("\ntitle")[0].split())
    assert "real Mach 0.44 times the speed of sound of the real fluid, 343.2 m/s" in head
    assert "gap 0.16 cells" in head
    (found,) = (x for x in of_case(case) if "of the real fluid" in x.message)
    assert (found.severity, found.where) == (WARNING, "boundary.0.velocity")
    assert "103 m/s" in found.message
    Path("case.toml").unlink()
    case = sphere(3e5, "--cells", "8")
    assert not [x for x in of_case(case) if "of the real fluid" in x.message]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bore", "1 m", "--length", "0.9 m"), "--length: found 0.9 m; allowed: at least the"),
        (("--bore", "1 m", "--cells", "100000", "--length", "30 km"), "give no valid case; change"),
    ],
)
def test_values_without_a_valid_case_are_named_by_their_options(options, words):
    output = refused("new", "case", *PIPE, "--speed", "1 m/s", *options)
    assert words in output
    assert output.count("\n") == 1


def test_a_bore_that_is_wider_than_the_passage_is_refused():
    """As by a wrong unit of the file."""
    trimesh.creation.box((200, 25, 25)).export("duct.stl")
    base = ("new", "case", "--template", "internal", "--body", "duct.stl", "--fluid", "water",
            "--speed", "1 m/s", "--cells", "10", "--unit")  # fmt: skip
    words = "--bore: found 0.025 m; the passage is at most 2.5e-05 m wide across its inlet x-"
    assert words in refused(*base, "um", "--bore", "25 mm")
    assert call(*base, "mm", "--bore", "25 mm").exit_code == 0


def test_the_effect_of_the_sides_is_that_of_the_manual():
    text = (ROOT / "mpilbm/view/manual/validation.md").read_text()
    section = text.partition(f"### {FREE}\n")[2].partition("\n### ")[0]
    for box in BOXES:
        assert re.search(rf"Re {box.reynolds:g} \|.*\| {box.found} \| {box.free} \|", section)
        assert box.text in accuracy_line(Resolution("external", box.reynolds, 61)).verdict
        assert f"blockage of the bounding box {100 * box.blockage:g} %" in section


def test_unresolved_walls():
    """Bodies and plane walls get a wall model; a case without one is judged as it is."""
    body, passage = Resolution("external", 1e6, 100), Resolution("internal", 1e6, 100)
    assert body_wall(body) == scheme.MODEL
    assert body_wall(passage)["name"] == "partially_saturated"
    assert "wall law" in wall_line(body).verdict
    assert "without a wall model" in wall_line(passage).verdict
    assert accuracy_line(body).value == "about 8.0% for a body with edges, such as a car"
    assert "Ahmed body, Re 2.78e+06, 80 cells: c_d 0.275" in accuracy_line(body).verdict
    assert "a sphere of 40 cells at Re 1e+06 had c_d 0.03" in accuracy_line(body).verdict
    coarse = replace(body, modelled=False)
    assert accuracy_line(coarse).value == "not trustworthy: c_d was 2 times too large"
    assert "without a wall model" in wall_line(coarse).verdict


def test_the_walls_of_a_case_are_those_it_has():
    """`check` of a proposal whose wall model was replaced."""
    sphere(1e6, "--cells", "16")
    text = Path("case.toml").read_text()
    models = {}
    for name in ("wall_model", "bounce_back"):
        law = '{name = "wall_model", law = "spalding"}'
        assert law in text
        given = text if name == "wall_model" else text.replace(law, f'{{name = "{name}"}}')
        Path("given.toml").write_text(given)
        case = load_case("given.toml")
        assert case.bodies[0].boundary.name == name
        models[name] = resolution(case, 0.05).walls
    assert models == {"wall_model": "modelled", "bounce_back": "coarse"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.flow} {row.reynolds:g} {row.cells}")
def test_figures_are_those_of_the_manual(row):
    text = (ROOT / "mpilbm/view/manual/validation.md").read_text()
    section = text.partition(f"### {row.section}\n")[2].partition("\n### ")[0]
    for number in (row.found, row.reference):
        assert re.search(rf"(?<![\d.]){number:g}0*(?!\d)", section), number


def test_measured_speeds_are_those_of_the_manual():
    text = (ROOT / "mpilbm/view/manual/performance.md").read_text()
    rows = [
        line for line in text.splitlines() if "Ahmed body, 160 cells" in line or "D3Q27, `b" in line
    ]
    for (lattice, _), glups in costs.MEASURED.items():
        assert any(lattice in row and f" {glups} " in row for row in rows)


EXTERNAL = ("--template", "external", "--body", "sphere", "--length", "1 m", "--fluid", "air")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*EXTERNAL,), "--speed: is missing; give a number with a unit, such as '40 m/s'"),
        ((*EXTERNAL, "--speed", "-4 m/s"), "--speed '-4 m/s': allowed: above 0"),
        ((*EXTERNAL, "--speed", "1e300 m/s"), "--speed '1e300 m/s': allowed: above 0 and finite"),
        ((*EXTERNAL, "--speed", "4"), "is no number with a unit; write it as '40 m/s'"),
        ((*EXTERNAL, "--speed", "4 m"), "has the unit m; allowed: '40 m/s'"),
        ((*EXTERNAL, "--speed", "4 furlong/day/x"), "unknown unit"),
        ((*EXTERNAL, "--speed", "4 m/s", "--bore", "1 m"), "--bore: is not of the template ext"),
        ((*EXTERNAL, "--speed", "4 m/s", "--unit", "mm"), "--unit: is of a file"),
        ((*EXTERNAL, "--speed", "4 m/s", "--temperature", "900 degC"), "--temperature"),
        ((*EXTERNAL, "--speed", "4 m/s", "--density", "1 kg/m^3"), "either --fluid water or air"),
        (("--template", "external", "--body", "car.stl"), "car.stl: there is no such file; give a"),
        (("--template", "external"), "--body: is missing"),
        ((*SPHERE, "--speed", "4 m/s"), "--length: is missing; a sphere requires it"),
        ((*EXTERNAL[:-1], "steam", "--speed", "4 m/s"), "--fluid steam: is not a known fluid"),
        ((*EXTERNAL[:-2], "--speed", "4 m/s"), "give either --fluid"),
        ((*PIPE, "--speed", "4 m/s"), "--bore: is missing"),
        ((*PIPE, "--speed", "4 m/s", "--bore", "1 m", "--outlet", "y+"), "are those of a mesh"),
        (("--template", "rock", "--speed", "4 m/s"), "--speed: applies to the templates external"),
        ((*EXTERNAL, "--speed", "4 m/s", "--dimensions", "3"), "--dimensions 3: applies to the"),
    ],
)
def test_mistakes_are_one_line(options, words):
    output = refused("new", "case", *options)
    assert words in output
    assert output.startswith("mpilbm: error: ")
    assert output.count("\n") == 1
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "found neither of --unit and --length"),
        (("--unit", "mm", "--length", "1 m"), "found both of --unit and --length"),
        (("--unit", "furlong"), "--unit furlong: is not a unit of a file; allowed: m, cm"),
    ],
)
def test_a_mesh_needs_its_size(options, words):
    shutil.copy(ROOT / "cases" / "ahmed.stl", ".")
    base = ("--template", "external", "--body", "ahmed.stl", "--fluid", "air", "--speed", "9 m/s")
    assert words in refused("new", "case", *base, *options)


def test_a_file_that_is_no_surface_is_refused():
    Path("car.stl").write_text("no surface")
    base = ("--template", "external", "--body", "car.stl", "--fluid", "air", "--speed", "9 m/s")
    assert "--body car.stl: " in refused("new", "case", *base, "--unit", "m")

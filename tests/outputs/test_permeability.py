"""permeability.csv: exact values of slits, units, refused cases, restarts, and `run.steady`."""

import numpy as np
import pytest
from support.body_forces import rows
from support.runs import run_case, summary
from support.slabs import PRECISIONS, Cluster

from mpilbm.case.case import parse_case
from mpilbm.case.case_findings import of_case
from mpilbm.case.driving import driving
from mpilbm.core.errors import CaseError
from mpilbm.outputs.permeability import MILLIDARCY

HEIGHT = 5
SLIT = HEIGHT**2 / 12 + 1 / 24  # mean of the exact profile over cell centres; the integral: h^2/12
FORCE = {"name": "guo", "value": [1e-5, 0]}
WALLS = [{"name": "bounce_back", "where": ["y-", "y+"]}]
ONE_DENSITY = [
    {"name": "bounce_back", "where": ["x-"]},
    {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
]
OUTPUT = {"name": "permeability", "every": 50}
STEADY = {"every": 100, "tolerance": 1e-12, "of": "permeability"}


def tables(**more):
    """A slit of 5 cells along x, with the magic parameter for which walls lie exactly half-way."""
    found = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [4, HEIGHT], "periodic": [True, False]},
        "fluid": {"viscosity": 0.2},
        "collision": {"name": "trt", "magic": 3 / 16},
        "force": FORCE,
        "precision": PRECISIONS["double"],
        "backend": {"name": "cpu"},
        "boundary": WALLS,
        "run": {"steps": 3000, "steady": STEADY},
        "output": [OUTPUT],
    }
    return {key: value for key, value in (found | more).items() if value is not None}


def last(folder):
    return rows(folder / "permeability.csv")[-1]


def result(folder, **more):
    run_case(parse_case(tables(**more), folder / "slit.toml"), folder / "out")
    return last(folder / "out")


def test_a_slit_has_its_exact_permeability(tmp_path):
    """With the magic parameter 3/16 the velocity of each cell is exact."""
    found = result(tmp_path)
    assert found["k_x"] == pytest.approx(SLIT, rel=1e-9)
    assert np.isnan(found["k_y"])
    assert (found["porosity"], found["u_y"]) == (1, pytest.approx(0, abs=1e-15))
    assert found["tortuosity"] == pytest.approx(1, rel=1e-9)
    assert found["u_x"] == pytest.approx(1e-5 * SLIT / 0.2, rel=1e-6)
    assert found["reynolds"] == pytest.approx(found["u_x"] * np.sqrt(found["k_x"]) / 0.2)
    assert summary(tmp_path / "out")["reason"].startswith(
        "steady: relative change of permeability "
    )


def test_solid_cells_count_as_parts_of_the_box(tmp_path):
    slab = {"name": "box", "lower": [-1, 5], "upper": [5, 9]}
    body = [{"label": "half", "shape": slab, "boundary": {"name": "bounce_back"}}]
    domain = {"size": [4, 9], "periodic": [True, False]}
    found = result(tmp_path, domain=domain, body=body)
    assert found["porosity"] == pytest.approx(5 / 9)
    assert found["k_x"] == pytest.approx(5 / 9 * SLIT, rel=1e-9)


@pytest.mark.parametrize("viscosity", [0.02, 1 / 6, 0.5])
def test_the_permeability_does_not_depend_on_the_viscosity(tmp_path, viscosity):
    """Of a disc with half-way walls and `trt`; the reference is the value at 0.1."""
    disc = {"name": "cylinder", "centre": [6.2, 5.7], "radius": 3.1}
    more = {
        "domain": {"size": [12, 11], "periodic": [True, True]},
        "collision": {"name": "trt"},
        "force": {"name": "guo", "value": [1e-9, 0]},
        "boundary": None,
        "body": [{"label": "disc", "shape": disc, "boundary": {"name": "bounce_back"}}],
        "run": {"steps": 40000, "steady": STEADY | {"every": 200, "tolerance": 1e-9}},
    }
    found = []
    for number, nu in enumerate((0.1, viscosity)):
        (tmp_path / str(number)).mkdir()
        found.append(result(tmp_path / str(number), fluid={"viscosity": nu}, **more)["k_x"])
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_pressure_differences_drive_a_flow_as_a_force(tmp_path):
    """A jump between periodic faces."""
    jump = [{"name": "pressure_jump", "where": ["x-", "x+"], "rho_jump": 1.2e-4}, *WALLS]
    found = result(tmp_path, force=None, boundary=jump)
    assert found["k_x"] == pytest.approx(SLIT, rel=1e-6)


def case_of(**more):
    return parse_case(tables(**more), "slit.toml")


def test_the_force_of_given_densities():
    ends = [
        {"name": "equilibrium", "where": ["x-"], "rho": 1.003},
        {"name": "equilibrium", "where": ["x+"], "rho": 1.0},
    ]
    domain = {"size": [10, HEIGHT]}
    axis, force = driving(case_of(domain=domain, boundary=ends + WALLS, force=None))
    assert (axis, force) == (0, pytest.approx(0.001 / 9))


def test_densities_at_faces_give_the_permeability(tmp_path):
    ends = [
        {"name": "zou_he", "where": ["x-"], "rho": 1.0003},
        {"name": "zou_he", "where": ["x+"], "rho": 1.0},
    ]
    domain = {"size": [21, HEIGHT]}
    found = result(tmp_path, domain=domain, boundary=ends + WALLS, force=None)
    assert found["k_x"] == pytest.approx(
        SLIT, rel=0.02
    )  # entrance; a length of 21 would give 5 % more


def test_si_columns(tmp_path):
    found = result(tmp_path, output=[OUTPUT | {"voxel": "5.345 um"}])
    assert found["k_x_m2"] == pytest.approx(found["k_x"] * 5.345e-6**2)
    assert found["k_x_mD"] == pytest.approx(found["k_x_m2"] / 9.869233e-16)
    assert pytest.approx(9.869233e-16) == MILLIDARCY
    assert "time_s" not in found
    assert "k_x_m2" not in last_of_plain(tmp_path)
    units = {"cell": 1e-5, "step": 2e-5, "density": 1000}
    (tmp_path / "units").mkdir()
    found = result(tmp_path / "units", units=units)
    assert found["k_x_m2"] == pytest.approx(found["k_x"] * 1e-10)
    assert found["u_x_m/s"] == pytest.approx(found["u_x"] * 0.5)
    assert found["time_s"] == pytest.approx(found["time"] * 2e-5)


def last_of_plain(folder):
    (folder / "plain").mkdir()
    return result(folder / "plain", run={"steps": 2})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"force": None}, "driven along no axis; allowed: a constant force"),
        ({"force": None, "domain": {"size": [10, HEIGHT]}, "boundary": ONE_DENSITY + WALLS},
         "driven along no axis"),
        ({"force": {"name": "guo", "value": [1e-5, 1e-5]}}, "driven along x and y; allowed: a"),
        ({"force": {"name": "guo", "value": ["1e-5*sin(t)", 0]}}, "force.value is '1e-5*sin(t)'"),
        ({"boundary": [WALLS[0] | {"velocity": [0.1, 0]}]}, "'bounce_back' at y-, y+ has a veloc"),
        ({"output": [OUTPUT | {"voxel": "5 kg"}]}, 'voxel: found "5 kg", of unit kg; allowed'),
        ({"output": [OUTPUT | {"voxel": "wide"}]}, 'voxel: found "wide"; allowed: a number'),
        ({"output": [OUTPUT | {"voxel": "1 fathm"}]}, "unknown unit 'fathm'"),
        ({"output": [OUTPUT | {"voxel": "1 mm"}],
          "units": {"cell": 1e-5, "step": 1e-5, "density": 1000}}, "but units.cell is 1e-05 m"),
        ({"collision": {"name": "bgk", "closure": {"name": "smagorinsky"}}}, "constant viscosity"),
        ({"sponge": [{"where": ["y+"], "thickness": 2}]}, "found a formula of it or a sponge"),
        ({"coupling": {"name": "shan_chen", "G": -5.0}, "collision": None}, "has a [coupling]"),
        ({"output": [OUTPUT, OUTPUT]}, "found 'permeability' 2 times"),
    ],
)  # fmt: skip
def test_refused(change, message):
    with pytest.raises(CaseError) as error:
        case_of(**change)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("of", "output", "message"),
    [
        (
            "permeability",
            [],
            'flow_rate, permeability; add [[output]] name = "permeability"',
        ),
        (
            "presure",
            [OUTPUT],
            "run.steady.of: found 'presure'; allowed: velocity, or an [[output]]",
        ),
        ("monitor", [{"name": "monitor", "every": 1}], "run.steady.of: found 'monitor'; allowed"),
    ],
)
def test_what_steady_cannot_watch(of, output, message):
    with pytest.raises(CaseError) as error:
        case_of(output=output, run={"steps": 10, "steady": STEADY | {"of": of}})
    assert message in str(error.value)
    assert len(error.value.problems) == 1


def test_an_output_with_a_mistake_is_reported_alone():
    run = {"steps": 10, "steady": STEADY}
    with pytest.raises(CaseError) as error:
        case_of(output=[{"name": "permeability", "every": 0}], run=run)
    (problem,) = error.value.problems
    assert "every" in problem


def test_a_continued_run_has_the_same_rows(tmp_path):
    """The change in the first row is relative to the last row before the restart."""
    output = [OUTPUT | {"every": 7}, {"name": "checkpoint", "every": 1000}]
    for folder, steps in (("whole", (30,)), ("parts", (14, 30))):
        for number, last_step in enumerate(steps):
            case = case_of(run={"steps": last_step}, output=output)
            run_case(case, tmp_path / folder, restart="auto" if number else None)
    texts = [(tmp_path / name / "permeability.csv").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 1 + 6


def test_sums_of_any_number_of_slabs_and_layout():
    """And they are those of the fields."""
    found = []
    for slabs, layout in ((1, "ab"), (3, "ab"), (2, "aa"), (2, "indirect")):
        disc = {"name": "sphere", "centre": [4.0, 3.4, 6.2], "radius": 2.6}
        case = tables(
            lattice={"name": "D3Q19"}, domain={"size": [8, 7, 12], "periodic": [True] * 3},
            force={"name": "guo", "value": [1e-4, 0, 0]}, boundary=None, run={"steps": 9},
            body=[{"label": "disc", "shape": disc, "boundary": {"name": "bounce_back"}}],
            layout={"name": layout},
        )  # fmt: skip
        cluster = Cluster(case, slabs).start().run(9)
        parts = cluster.each(lambda s: s.diagnostics.start_flux()())
        found.append(np.cumsum(np.concatenate(parts), axis=0)[-1])
        fields = cluster.fields("rho", "u")
        u = fields["u"].reshape(-1, 3)
        speed = np.sqrt((u**2).sum(axis=1)).sum()
        momentum = (fields["rho"].reshape(-1, 1) * u).sum(axis=0)
        assert found[-1] == pytest.approx([*momentum, *u.sum(axis=0), speed], rel=1e-12, abs=1e-15)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert found[3] == pytest.approx(found[0], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("solid", "drag", "error"), [(0.216, 7.442, 0.02), (0.343, 15.4, 0.04)])
def test_an_array_of_spheres_has_its_known_permeability(tmp_path, optimised, solid, drag, error):
    """k = n^3 / (6 pi R K), K: drag relative to that of one sphere [Zick & Homsy 1982]."""
    n, radius = 16, 16 * (3 * solid / 4 / np.pi) ** (1 / 3)
    ball = {"name": "sphere", "centre": [n / 2] * 3, "radius": radius}
    found = result(
        tmp_path,
        lattice={"name": "D3Q19"},
        domain={"size": [n] * 3, "periodic": [True] * 3},
        force={"name": "guo", "value": [0, 0, 1e-6]},
        fluid={"viscosity": 0.1},
        boundary=None,
        body=[{"label": "ball", "shape": ball, "boundary": {"name": "interpolated"}}],
        run={"steps": 2000, "steady": STEADY | {"every": 50, "tolerance": 1e-6}},
    )
    assert found["k_z"] == pytest.approx(n**3 / (6 * np.pi * radius * drag), rel=error)
    assert np.isnan([found["k_x"], found["k_y"]]).all()
    assert found["u_x"] == pytest.approx(0, abs=1e-12)
    assert 1 < found["tortuosity"] < 1.5


BALL = {"label": "ball", "shape": {"name": "cylinder", "centre": [2, 2.5], "radius": 1.2}}
VOXELS = {"label": "ball", "shape": {"name": "voxels", "file": "ball.npy"}}


@pytest.mark.parametrize(
    ("collision", "body", "boundary", "cause"),
    [
        ("trt", BALL, "bounce_back", ""),
        ("trt", BALL, "central_linear", ""),
        ("trt", VOXELS, "interpolated", ""),
        ("trt", BALL, "interpolated", "'interpolated' at body 'ball', which"),
        ("bgk", BALL, "bounce_back", "the collision 'bgk', which"),
        ("bgk", BALL, "interpolated", "the collision 'bgk' and 'interpolated' at body 'ball', w"),
    ],
)
def test_a_permeability_that_depends_on_the_viscosity_is_reported(
    collision, body, boundary, cause, tmp_path
):
    np.save(tmp_path / "ball.npy", np.eye(HEIGHT, 4, dtype=bool))
    bodies = [body | {"boundary": {"name": boundary}}]
    case = parse_case(tables(collision={"name": collision}, body=bodies), tmp_path / "slit.toml")
    found = [str(each) for each in of_case(case) if "k depends" in each.message]
    assert len(found) == bool(cause)
    for text in found:
        assert text.startswith(f"output.0: k depends on the viscosity with {cause}")
        assert ('collision.name = "trt"' in text) == (collision == "bgk")
        assert ('boundary.name = "central_linear"' in text) == (boundary == "interpolated")

"""What is given at faces and walls, as formulas: where and when it holds, and its limits."""

import re

import h5py
import numpy as np
import pytest
from support.faces import closed, table
from support.findings import warnings_of
from support.slabs import Cluster

from mpilbm import codegen
from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import make

AT_REST = {"rho": 1, "u": [0.0, 0.0]}
INLET = ["0.01*sin(t/9)", "0.2*x*(nx - x)/nx**2*(1 - exp(-t/20))"]
RHO = "1 + 0.001*sin(t/7)*where(x > 4, 1, 0.5)"


def pipe(layout: str, **more):
    ends = [
        table("bounce_back", "x-", "x+", D=2),
        {"name": "zou_he", "where": ["y-"], "velocity": INLET, "priority": 1},
        {"name": "regularized", "where": ["y+"], "rho": RHO, "priority": 1},
    ]
    return closed("D2Q9", [8, 13], ends, layout={"name": layout}, initial=AT_REST, **more)


@pytest.mark.parametrize("layout", ["ab", "indirect", "moments"])
def test_a_face_has_what_is_given_at_the_step_it_has_reached(layout):
    whole = Cluster(pipe(layout)).start().run(30)
    fields, x, t = whole.fields("rho", "u"), np.arange(8) + 0.5, 30
    rho = 1 + 0.001 * np.sin(t / 7) * np.where(x > 4, 1, 0.5)
    u = 0.2 * x * (8 - x) / 64 * (1 - np.exp(-t / 20))
    assert np.abs(fields["u"][0, 0, :, 1] - u).max() < 1e-14
    assert np.abs(fields["u"][0, 0, :, 0] - 0.01 * np.sin(t / 9)).max() < 1e-14
    assert np.abs(fields["rho"][-1, 0, 1:-1] - rho[1:-1]).max() < 1e-14
    half = Cluster(pipe(layout), 3).start().run(11).state()
    assert np.array_equal(Cluster(pipe(layout), 2).restore(half, 11).run(19).state(), whole.state())


def test_text_holds_the_form_of_formulas_alone():
    first = codegen.structure(parse_case(pipe("ab"), "test.toml"))
    other = pipe("ab")
    other["boundary"][1]["velocity"] = [0.01, "0.1*x*(7 - x)/ny**2*(2 - exp(-t/30))"]
    other["boundary"][2]["rho"] = "2 + 0.1*cos(t)*where(x > nx/2, 2, 3)"
    assert codegen.structure(parse_case(other, "test.toml")) == first
    other["boundary"][1]["velocity"] = [0.01, "0.01*x"]
    assert codegen.structure(parse_case(other, "test.toml")) != first


def test_a_wall_half_a_cell_out_has_the_velocity_that_is_given_there():
    """From rest the links c = (1, -1), (-1, -1) bring 6 w (u(x - 1/2) - u(x + 1/2)) in a step."""
    wall = {"name": "bounce_back", "where": ["y+"], "velocity": ["0.01*x", 0.0]}
    others = table("bounce_back", "x-", "x+", "y-", D=2)
    fields = Cluster(closed("D2Q9", [8, 5], [others, wall], initial=AT_REST)).start().run(1)
    fields, x = fields.fields("rho", "u"), np.arange(8) + 0.5
    assert np.abs(fields["rho"][-1, 0, 1:-1] - 1 + 0.01 / 6).max() < 1e-15
    momentum = fields["rho"][-1, 0] * fields["u"][-1, 0, :, 0]
    assert np.abs(momentum - 0.01 * x / 3)[1:-1].max() < 1e-15


LATER = "boundary.1.velocity: found the speed 0.9 at t = 900 (above the limit first at t = 578); "
LIMITS = {
    "0.7": "boundary.1.velocity: found the speed 0.7; allowed",
    "0.7*x/nx": "boundary.1.velocity: found the speed 0.6562; allowed",
    "0.001*t": LATER,
    "0.1*log(1.5 - y)": None,  # of no concern that it is no number elsewhere
    "0.001*t*where(x < 1, 1, 0)": LATER,
    "0.1*log(nx - x - 1)": "boundary.1.velocity.1: '0.1*log(nx - x - 1)' is nan at t = 0; allowed",
    "0.1*z": "boundary.1.velocity.1: ",
}


@pytest.mark.parametrize("text", LIMITS)
def test_speeds_are_held_against_that_of_sound_before_the_run(text):
    tables = pipe("ab", run={"steps": 900})
    tables["boundary"][1]["velocity"] = [0.0, text]
    if LIMITS[text] is None:
        assert warnings_of(parse_case(tables, "test.toml")) == ()
        return
    with pytest.raises(CaseError) as error:
        parse_case(tables, "test.toml")
    assert LIMITS[text] in str(error.value)


def test_a_fast_flow_is_warned_of():
    tables = pipe("ab", run={"steps": 100})
    tables["boundary"][1]["velocity"] = [0.0, "0.003*t"]
    (warning,) = warnings_of(parse_case(tables, "test.toml"))
    since = r"\(above the limit first at t = 58\)"
    assert re.match(rf"boundary.1.velocity: the speed 0.3 at t = 100 {since}, Mach", warning)


def test_faces_that_fill_the_box_only_later_are_warned_of():
    ends = [table("zou_he", face, D=2) for face in ("y-", "y+")]
    for end, more in zip(ends, ("", "*(1 + sin(2*pi*t/100))"), strict=True):
        end["velocity"] = [0.0, f"0.05{more}"]
    walls = table("bounce_back", "x-", "x+", D=2)
    tables = closed("D2Q9", [8, 5], [walls, *ends], run={"steps": 800})
    (warning,) = warnings_of(parse_case(tables, "test.toml"))
    assert re.search(r"add -?0\.\d+ cells per step at t = [1-9]", warning)


def test_the_speed_of_a_body_is_taken_within_its_shape():
    ball = {"name": "sphere", "centre": [4, 6], "radius": 2}
    turning = {"name": "bounce_back", "velocity": ["-0.2*(y - 6)", "0.2*(x - 4)"]}
    tables = pipe("ab", body=[{"shape": ball, "boundary": turning}])
    (warning,) = warnings_of(parse_case(tables, "test.toml"))
    assert "boundary.velocity: the speed 0.3" in warning


def test_faces_that_fill_the_box_are_warned_of():
    inlet = {"name": "zou_he", "where": ["y-"], "velocity": [0.0, "0.05*sin(pi*x/nx)"]}
    for out, warned in ((0.05, ()), (0.04, ("add 0.051",)), (None, ("no face fixes",))):
        far = {"name": "guo", "where": ["y+"], "velocity": [0.0, f"{out}*sin(pi*x/nx)"]}
        far = far if out else {"name": "copy", "where": ["y+"]}
        walls = table("bounce_back", "x-", "x+", D=2)
        found = warnings_of(parse_case(closed("D2Q9", [8, 5], [walls, inlet, far]), "test.toml"))
        assert len(found) == len(warned)
        assert all(text in line for text, line in zip(warned, found, strict=True))


@pytest.mark.parametrize("rho", [0.0, -1.0, "1 - t/5", "x - 0.5"])
def test_a_density_is_positive(rho):
    tables = pipe("ab")
    tables["boundary"][2]["rho"] = rho
    with pytest.raises(CaseError, match=r"boundary.2.rho: .* allowed: from 1e-30"):
        parse_case(tables, "test.toml")


# ---------------------------------------------------------------------------------------- files


def from_file(directory, velocity, lattice="D2Q9", **more):
    """A box with a file for the velocity at its last face."""
    D = make("lattices", lattice).D
    size, last = [6, 4, 8][-D:], "xyz"[D - 1]
    ends = [{"name": "zou_he", "where": [last + "-"], "velocity": velocity},
            {"name": "regularized", "where": [last + "+"], "rho": 1.0}]  # fmt: skip
    ends[1]["name"] = "zou_he" if lattice == "D3Q13" else "regularized"
    still = {"rho": 1, "u": [0] * D}
    collision = {"name": "mrt" if lattice == "D3Q13" else "regularized"}
    tables = closed(lattice, size, ends, initial=still, collision=collision, **more)
    tables["domain"]["periodic"] = [True] * (D - 1) + [False]
    return tables, directory / "case.toml"


@pytest.fixture
def at(monkeypatch, tmp_path):
    """Clusters whose cases lie in the temporary folder."""
    monkeypatch.setattr(
        "support.slabs.parse_case", lambda tables, _: parse_case(tables, tmp_path / "a.toml")
    )
    return tmp_path


def test_a_series_is_linear_between_its_rows_and_constant_beyond(at):
    (at / "inlet.csv").write_text("t,u_x,u_y\n2,0.01,0.02\n6,0.03,0.06\n")
    tables, _ = from_file(at, "inlet.csv")
    for steps, expected in ((1, [0.01, 0.02]), (5, [0.025, 0.05]), (9, [0.03, 0.06])):
        u = Cluster(tables).start().run(steps).fields("u")["u"][0]
        assert np.abs(u - expected).max() < 1e-14


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q13", "D3Q19"])
@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_a_plane_gives_each_cell_its_own(at, lattice, kind):
    tables, _ = from_file(at, {"npy": "u.npy", "h5": "u.h5:inlet"}[kind], lattice)
    size, D = tables["domain"]["size"], make("lattices", lattice).D
    plane = np.random.default_rng(1).random((*size[-2::-1], D)) / 20
    if kind == "npy":
        np.save(at / "u.npy", plane)
    else:
        with h5py.File(at / "u.h5", "w") as file:
            file["inlet"] = plane
    cluster = Cluster(tables, 2).start().run(3)
    rows, nx = cluster.case.shape[1:]
    row, k = np.ogrid[:rows, :nx]
    wanted = plane.reshape(rows, size[0], D)[row, cluster.case.lattice.x(0, row, k)]
    assert np.abs(cluster.fields("u")["u"][0] - wanted).max() < 1e-14


def fails(at, velocity, sentence):
    tables, path = from_file(at, velocity)
    with pytest.raises(CaseError, match=sentence):
        parse_case(tables, path)


def test_files_that_do_not_fit(at):
    fails(at, "none.csv", r"boundary.0.velocity: 'none.csv' is missing")
    fails(at, "0.1*x", r"boundary.0.velocity: '0.1\*x' is neither a list nor a file; allowed")
    for text in ("1,2,3\n0,2,3\n", "1,2\n", "1,2,3,4\n"):
        (at / "a.csv").write_text(text)
        fails(at, "a.csv", "is not a time series; allowed: rows of 3 numbers")
    (at / "a.csv").write_text("t,u,v\n1,two,3\n")
    fails(at, "a.csv", "cannot be read as rows of numbers")
    np.save(at / "u.npy", np.zeros((3, 2)))
    fails(at, "u.npy", r"has shape \(3, 2\); allowed for the face y-: \(4, 2\), slowest axis first")
    np.save(at / "u.npy", np.full((4, 2), np.nan))
    fails(at, "u.npy", "not finite")
    np.save(at / "u.npy", np.full((4, 2), 0.6))
    fails(at, "u.npy", "found the speed 0.8485")
    (at / "a.csv").write_text("0,0,0\n5,0,0.7\n")
    fails(at, "a.csv", r"found the speed 0.7 at t = 5|allowed")

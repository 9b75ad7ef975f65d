"""Two steps in one pass with boundary lists at faces of the box: the bits of single steps.

More than 20 s: each kind of boundary has texts of its own on D3Q19, generated and compiled in C++.
D3Q27, whose texts take up to 20 s to generate, has one of few terms.
"""

import json

import numpy as np
import pytest
from support.emulated_device import EmulatedDevice, command
from support.faces import NAMES, table
from support.slabs import Cluster, assert_same
from support.two_steps import (
    FILLED,
    FORCE,
    Alone,
    Launcher,
    Recorder,
    at_faces,
    edges_of_thick_slabs,
    small_tiles,
    tile,
    two_are_faster,
)

from mpilbm.backends.cuda import overlap, tiles
from mpilbm.case.case import parse_case
from mpilbm.codegen.program import SHARE
from mpilbm.parallel import slabs
from mpilbm.solids.windows import REACH, allows_windows
from mpilbm.solver.exchange_plan import allows_two_steps
from mpilbm.solver.face_windows import FaceWindow
from mpilbm.solver.memory_plan import bytes_needed

pytestmark = pytest.mark.skipif(command() is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two steps in one pass are faster; slabs of 12 planes have bulk planes."""
    small_tiles(monkeypatch)
    two_are_faster(monkeypatch)
    monkeypatch.setattr(tiles, "TWO_STEPS", (tile(12, 8, 2),))
    monkeypatch.setattr(overlap, "parts", edges_of_thick_slabs)


def inlet(face: str, speed=0.05) -> dict:
    velocity = [speed * (axis == face[0]) for axis in "xyz"]
    return {"name": "equilibrium", "where": [face], "velocity": velocity}


def outlet(face: str, name="equilibrium", **more) -> dict:
    return {"name": name, "where": [face], "rho": 1.0} | more


def sides(name: str, *faces: str, **more) -> dict:
    return {"name": name, "where": list(faces)} | more


ROAD = sides("bounce_back", "z-", velocity=[0.05, 0, 0])
CLOSED = {"name": "recursive_regularized", "closure": {"name": "smagorinsky"}}
GUST = {"name": "zou_he", "where": ["y-"], "velocity": [0, "0.03*(1 + 0.2*sin(t))", 0], "ramp": 7}
SPONGE = {"where": ["x+"], "thickness": 5, "viscosity": 0.1}
PROFILE = {"name": "regularized", "where": ["x-"], "velocity": ["0.05*z*(nz - z)/nz**2", 0, 0]}


def block(lower: list[int], upper: list[int]) -> dict:
    """A body with half-way walls at rest, in or at a window."""
    shape = {"name": "box", "lower": lower, "upper": upper}
    label = "block" + "".join(map(str, lower))
    return {"label": label, "shape": shape, "boundary": {"name": "bounce_back"}}


CASES = {
    "x": at_faces([inlet("x-"), outlet("x+")], (42, 9, 7)),
    "walls": at_faces(
        [inlet("x-"), outlet("x+", "copy"), sides("interpolated", "y-", velocity=[0.01, 0, 0]),
         sides("central_linear", "y+")],
        (20, 10, 7),
    ),
    "one end": at_faces([inlet("x+", -0.03), sides("bounce_back", "x-")], (26, 9, 7)),
    "profile": at_faces([PROFILE, outlet("x+", "yu")], (20, 9, 7), **FORCE),
    "profile along a cut": at_faces(
        [PROFILE, outlet("x+"), sides("zou_he", "z+", rho=1.0), sides("bounce_back", "z-")],
        (20, 9, 13),
    ),
    "sponges": at_faces(
        [inlet("x-"), outlet("x+", "characteristic"), outlet("z-", "neumann"),
         outlet("z+", "copy")],
        (20, 9, 16),
        sponge=[SPONGE, SPONGE | {"where": ["z+"]}],
        force={"name": "guo", "value": ["1e-4*x", "1e-4*z", "1e-4*y"]},
    ),
    "y in time": at_faces([GUST, outlet("y+", "neumann")], (20, 13, 7)),
    "z": at_faces(
        [inlet("z-"), outlet("z+", "regularized"), sides("bounce_back", "x-", "x+")],
        (20, 9, 25),
        body=[block([3, 2, 0], [9, 7, 3]), block([12, 0, 18], [16, 5, 24])],
    ),
    "mirrors": at_faces(
        [inlet("x-"), outlet("x+", "guo"), sides("free_slip", "y-", "y+", "z-", "z+")],
        (36, 12, 10),
        precision="half",
        body=[block([0, 0, 3], [5, 6, 8]), block([15, 3, 0], [21, 9, 5])],
    ),
    "car": at_faces(
        [inlet("x-"), outlet("x+", "characteristic"), sides("free_slip", "y-", "y+", "z+"), ROAD],
        (36, 14, 14),
        precision="mixed_moments",
        body=[FILLED, block([2, 9, 8], [6, 14, 12]), block([30, 3, 0], [36, 9, 5])],
        collision=CLOSED,
    ),
    "wall models": at_faces(
        [sides("wall_model", "y-", law="spalding", sample=3, roughness=0.1),
         sides("wall_model", "y+", "z-", "z+", law="power", velocity=[0.03, 0, 0])],
        (20, 10, 12),
    ),
    "grad": at_faces([inlet("x-"), outlet("x+", "grad", source="neighbours")], (20, 9, 7)),
    "jump": at_faces(
        [sides("pressure_jump", "y-", "y+", rho_jump=0.01), sides("bounce_back", "z-", "z+")],
        (20, 11, 7),
        precision="double",
    ),
    "lids": at_faces(
        [sides("bounce_back", "y+", velocity=["0.05*x/nx", 0, 0], ramp=9),
         sides("bounce_back", "y-"), sides("do_nothing", "z+"),
         sides("equilibrium", "z-", velocity=[0, 0, 0.01])],
        (20, 10, 12),
        lattice="D3Q27",
    ),
}  # fmt: skip


def single(case: dict, steps: int) -> Cluster:
    return Cluster(case, 1, EmulatedDevice).start().run(steps)


def advanced(case: dict, count: int, *parts: int, device=EmulatedDevice) -> Cluster:
    """So many steps on `count` slabs, two at a time where groups are."""
    cluster = Cluster(case, count, device, Alone() if count == 1 else None).start()
    assert all(solver.two_steps for solver in cluster.solvers)
    for steps in parts:
        cluster.each(lambda solver, steps=steps: solver.advance(steps))
    return cluster


@pytest.mark.parametrize(
    ("name", "count"), [*((n, 2) for n in CASES), ("z", 3), *((n, 1) for n in ("car", "sponges"))]
)
def test_the_bits_of_single_steps(name, count):
    """Groups after odd numbers of steps, after single steps and after another group."""
    device = Recorder if count == 1 else EmulatedDevice
    found = advanced(CASES[name], count, 3, 5, 8, device=device)
    assert any(solver.lists[0].count for solver in found.solvers)
    assert_same(single(CASES[name], 16), found)


def test_a_choice_measured_without_windows_is_measured_again():
    (solver,) = advanced(CASES["mirrors"], 1, device=Recorder).solvers
    facts = json.dumps(solver.two_steps._facts())
    assert solver.two_steps._windows
    solver.two_steps._windows = []
    assert json.dumps(solver.two_steps._facts()) != facts


@pytest.mark.parametrize("capability", [80, 90])
def test_tiles_wider_than_rows_of_windows(capability, monkeypatch):
    """Copies of rows by threads or tensor maps; what lies beyond the end of a row is not used."""
    monkeypatch.setattr(tiles, "CANDIDATES", tiles.NARROW[-1:])
    monkeypatch.setattr(tiles, "NARROW", ())
    monkeypatch.setattr(Recorder, "capability", capability)
    case = CASES["mirrors"]
    found = advanced(case, 1, 4, device=Recorder)
    (window,) = found.solvers[0].two_steps._windows
    kernel = window._context.kernels["collide_stream_0"]
    assert kernel.tile.tx == window._own.grid.row_stride == 16
    assert kernel.tile.bulk == (capability == 90)
    assert_same(single(case, 4), found)


@pytest.mark.parametrize("name", ["y in time", "car"])
def test_a_restart_after_an_odd_number_of_steps(name):
    """With ramps and cells that bodies fill: the values of time, arrays and windows follow."""
    found = advanced(CASES[name], 2, 5)
    kept = np.concatenate(found.each(lambda s: s.read_state("", 0, s.slab.planes)))
    resumed = Cluster(CASES[name], 1, Recorder, Alone()).restore(kept, 5)
    resumed.each(lambda solver: solver.advance(8))
    assert_same(found.run(8), resumed)


def test_values_of_time_without_recordings():
    """The values of each step, also in steps that are enqueued one by one."""
    case = CASES["y in time"]
    found = advanced(case, 1, 7, device=Launcher)
    assert np.array_equal(found.state(), single(case, 7).state())


def test_a_pass_is_wrong_next_to_faces_alone(monkeypatch):
    """The windows hold all of these cells, and nothing else needs to be copied.

    Along x a pass leaves out the cells that windows compute, which are wrong from then on.
    """
    case = CASES["mirrors"]
    expected = single(case, 4).state()
    monkeypatch.setattr(FaceWindow, "scatter", lambda *_: lambda *_: None)
    # the second pass begins with wrong cells; the first one writes them to the other array
    found = advanced(case, 1, 4, device=Recorder).state()
    wrong = np.argwhere((found != expected).any(axis=1))
    planes, rows, nx = found.shape[0], *found.shape[2:]
    inner = np.minimum(wrong, np.array([planes, rows, nx]) - 1 - wrong).min(axis=1)
    assert wrong.size
    assert inner.max() < 3 * REACH  # cells of a window beside an outlet and mirrors


def allowed(boundaries, **more) -> bool:
    case = parse_case(at_faces(boundaries, (20, 10, 12), **more), "test.toml")
    (slab,) = slabs.split(case.shape, 1, case.domain.periodic[-1])
    return allows_two_steps(case, slab)


def test_boundaries_that_keep_a_state_take_single_steps():
    """All others take windows, unless they read the cells behind links."""
    tables = {n: at_faces([table(n, "x-", "x+", D=3)], (20, 10, 12)) for n in NAMES}
    allowed = {n for n in NAMES if allows_windows(parse_case(tables[n], "test.toml"))}
    assert {*NAMES} - allowed == {"full_way", "grad", "tamm_mott_smith"}
    assert allowed <= {each["name"] for case in CASES.values() for each in case["boundary"]}


@pytest.mark.parametrize(
    ("boundaries", "more"),
    [
        ([inlet("x-"), outlet("x+")], {"force": {"name": "guo", "value": ["1e-4*t", 0, 0]}}),
        ([sides("pressure_jump", "z-", "z+", rho_jump=0.01), sides("bounce_back", "y-", "y+")], {}),
        ([inlet("x-"), outlet("x+")], {"body": [FILLED | {"boundary": {"name": "interpolated"}}]}),
    ],
    ids=[
        "force of t",
        "jump across planes",
        "body on links",
    ],
)
def test_other_cases_take_single_steps(boundaries, more):
    assert allowed([inlet("x-"), outlet("x+")])
    assert not allowed(boundaries, **more)


@pytest.mark.parametrize(("size", "count"), [((7, 9, 12), 1), ((20, 9, 7), 1), ((20, 9, 11), 3)])
def test_boxes_without_room_for_windows_take_single_steps(size, count):
    """Four cells at each end, on the first and the last slab four planes."""
    faces = [inlet("x-"), outlet("x+"), outlet("z-"), outlet("z+", "neumann")]
    case = parse_case(at_faces(faces, size), "test.toml")
    found = [allows_two_steps(case, each) for each in slabs.split(case.shape, count, False)]
    assert not all(found)


def test_windows_are_counted():
    for name in ("x", "car"):
        (solver,) = Cluster(CASES[name], 1, Recorder, Alone()).solvers
        needed = bytes_needed(solver.case, solver.slab)
        arrays = [a for window in solver.two_steps._windows for a in window._own.f]
        assert needed["windows at faces"] == sum(array.nbytes for array in arrays)
        assert needed["populations"] == sum(array.nbytes for array in solver.fluids[0].f)
        own = [solver.context, *(window._context for window in solver.two_steps._windows)]
        shares = sum(each.tables[SHARE].nbytes for each in own if SHARE in each.tables)
        assert needed.get("solid shares", 0) == shares

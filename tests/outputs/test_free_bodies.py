"""Bodies that move freely: rows of their files, restarts, the Python object, contacts."""

import zlib

import h5py
import numpy as np
import pytest
from support.body_forces import OUTPUT, flow, rows
from support.mpi_runs import datasets

from mpilbm.case.case import parse_case
from mpilbm.core.errors import BodyError, CaseError
from mpilbm.core.files.file_digest import Extent, trailer
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run
from mpilbm.run.simulation import Simulation

CELLS = {"name": "partially_saturated"}
DISC = {"name": "sphere", "centre": [10.3, 14.4], "radius": 3.0}
WALLS = ["x-", "x+", "y-", "y+"]
UNITS = {"cell": "1 mm", "step": "1 ms", "density": "1000 kg/m^3"}


def case(motion=None, steps=12, shape=DISC, bodies=(), outputs=None, **more):
    """A disc that falls in a closed box of 24 x 22 cells."""
    given = {"name": "free", "density": 1.5, "gravity": 1e-3} | (motion or {})
    part = {"label": "ball", "shape": shape, "boundary": CELLS, "motion": given}
    tables = flow("D2Q9", size=[24, 22], body=[part, *bodies], run={"steps": steps})
    tables["domain"] = {"size": [24, 22], "periodic": [False, False]}
    tables["boundary"] = [{"name": "bounce_back", "where": WALLS}]
    tables |= {"initial": {"u": [0, 0]}, "backend": {"name": "cpu"}}
    del tables["force"]
    outputs = [OUTPUT, {"name": "checkpoint", "every": 4}] if outputs is None else outputs
    return parse_case(tables | {"output": outputs} | more, "test.toml")


def files(folder):
    return [(folder / "forces_ball.csv").read_text(), _state(folder)]


def _state(folder):
    found = datasets(folder / "checkpoint_000000012.h5")
    return found["fluid/f"].tobytes(), found["free.bodies"].tobytes()


@pytest.mark.parametrize("layout", ["ab", "aa", "moments"])
def test_restarts_and_outputs_do_not_show(layout, tmp_path):
    """A run in two parts, from a checkpoint, and a run that writes forces at some steps only."""
    more = {"layout": {"name": layout}}
    turning = {"rate": 0.01, "velocity": [0.02, 0]}
    run(case(turning, **more), world(), tmp_path / "whole")
    run(case(turning, steps=7, **more), world(), tmp_path / "parts")
    run(case(turning, **more), world(), tmp_path / "parts", restart="auto")
    assert files(tmp_path / "whole") == files(tmp_path / "parts")
    few = [{"name": "checkpoint", "every": 12}]
    run(case(turning, outputs=few, **more), world(), tmp_path / "few")
    assert _state(tmp_path / "few") == _state(tmp_path / "whole")


def test_rows_and_the_bodies_of_a_program(tmp_path):
    """The force of a row, in the step that follows, is that of `sim.bodies` after this step."""
    with Simulation(case(), world(), directory=tmp_path / "run") as sim:
        assert sim.bodies["ball"].position == pytest.approx([10.3, 14.4])
        seen = []
        sim.run(12, call=lambda s: seen.append(s.bodies["ball"]))
        assert sim.bodies["ball"].velocity[1] < -1e-4
    found = rows(tmp_path / "run" / "forces_ball.csv")
    assert len(found) == 13
    for row, body, before in zip(found[1:], seen[1:], seen, strict=False):
        assert [row["force_x"], row["force_y"]] == pytest.approx(body.force, abs=1e-15)
        middle = (body.position + before.position) / 2
        assert [row["position_x"], row["position_y"]] == pytest.approx(middle, abs=1e-13)
        assert row["velocity_y"] == pytest.approx((body.velocity + before.velocity)[1] / 2)
    assert found[5]["force_y"] > 1e-3


def test_units(tmp_path):
    """A density and an acceleration in SI are those in lattice units."""
    si = {"density": "1500 kg/m^3", "gravity": "1 m/s^2", "spring": ["0 N/m^2", "20 N/m^2"]}
    si |= {"damper": [0, "3 kg/(m s)"]}
    number = {"density": 1.5, "gravity": 1e-3, "spring": [0, 0.02], "damper": [0, 3.0]}
    found = [case(each, units=UNITS).bodies[0].motion for each in (si, number)]
    for name in number:
        assert getattr(found[0], name) == pytest.approx(getattr(found[1], name)), name


TOUCHES = {
    "wall": (
        {"gravity": [0.0, -2e-3], "contact_speed": 1e-3, "contact": 0.5},
        (),
        "the wall at y-",
    ),
    "body": (
        {"gravity": [2e-3, 0.0], "contact_speed": 1e-3, "contact": 0.5},
        [{"label": "post", "shape": {"name": "box", "lower": [17, 0], "upper": [20, 22]}}],
        "touches body 'post'",
    ),
}


@pytest.mark.parametrize("name", TOUCHES)
def test_bodies_that_touch_end_the_run(name, tmp_path):
    """With the exit code 3 and the step, where the repulsion is too weak."""
    motion, others, text = TOUCHES[name]
    motion = motion | {"density": 50.0}
    others = [each | {"boundary": {"name": "bounce_back"}} for each in others]
    with pytest.raises(BodyError, match=f"{text}.* in step [0-9]+; bodies do not") as raised:
        run(case(motion, steps=500, bodies=others, outputs=[]), world(), tmp_path / "run")
    assert raised.value.exit_code == 3
    assert 10 < raised.value.step < 500


def test_a_body_that_leaves_through_an_opening(tmp_path):
    faces = [{"name": "bounce_back", "where": ["x-", "x+", "y+"]}]
    faces.append({"name": "equilibrium", "where": ["y-"], "rho": 1.0})
    given = case({"density": 20.0, "gravity": 1e-3}, steps=900, boundary=faces, outputs=[])
    with pytest.raises(BodyError, match=r"leaves the box through y- in step .* use a longer box"):
        run(given, world(), tmp_path / "run")


def test_a_body_in_a_wall_at_the_start():
    """The message says what to change there; the repulsion has not acted yet."""
    with pytest.raises(CaseError, match=r"the wall at y- at the start; .*; move the body, or") as e:
        case(shape=DISC | {"centre": [10.3, 2.4]})
    assert "contact" not in str(e.value)


def test_rotations_that_are_fixed_since_a_checkpoint(tmp_path):
    """The body keeps its orientation and stops to turn."""
    run(case({"rate": 0.02}), world(), tmp_path / "run")
    run(case({"fixed": ["rotation"]}, steps=20), world(), tmp_path / "run", restart="auto")
    found = rows(tmp_path / "run" / "forces_ball.csv")
    assert found[10]["angle"] > 0.05
    assert found[20]["angle"] == found[16]["angle"]


def test_an_axis_about_which_a_body_has_not_turned_alone(tmp_path):
    """Its angle about this axis is not known: CaseError."""
    domain = {"size": [16, 16, 16], "periodic": [True] * 3}
    more = {"lattice": {"name": "D3Q19"}, "domain": domain, "boundary": []}
    more |= {"initial": {"u": [0, 0, 0]}, "outputs": [{"name": "checkpoint", "every": 4}]}
    more["shape"] = DISC | {"centre": [8, 8, 8]}
    run(case({"rate": [0.1, 0, 0]}, steps=4, **more), world(), tmp_path / "run")
    fixed = {"fixed": ["rotation_x", "rotation_y"]}
    with pytest.raises(CaseError, match=r"ball.motion.fixed: found one free axis.*; restart with"):
        run(case(fixed, steps=6, **more), world(), tmp_path / "run", restart="auto")


def test_other_bodies_in_a_checkpoint(tmp_path):
    run(case(), world(), tmp_path / "run")
    goes = {"name": "translation", "velocity": [0, 0]}
    body = {"label": "ball", "shape": DISC, "boundary": CELLS, "motion": goes}
    with pytest.raises(CaseError, match=r"has free bodies = \['ball'\], the case \[\]; .* labels"):
        run(case(steps=14, body=[body]), world(), tmp_path / "run", restart="auto")


def pair(steps: int, *order: int, labels=("one", "two")):
    """Two discs that fall; `order`: which one is the first and the second in the case."""
    motions = [{"density": 1.5, "rate": 0.01}, {"density": 3.0}]
    bodies = []
    for label, at, motion in zip(labels, ([6.3, 14.4], [16.2, 12.1]), motions, strict=True):
        motion = {"name": "free", "gravity": 1e-3} | motion
        shape = DISC | {"centre": at}
        bodies.append({"label": label, "shape": shape, "boundary": CELLS, "motion": motion})
    return case(steps=steps, body=[bodies[k] for k in order])


def test_exchanged_bodies_keep_their_states(tmp_path):
    """A checkpoint names its bodies: their order in the case may change, their labels may not."""
    for folder, order in (("same", (0, 1)), ("other", (1, 0))):
        run(pair(7, 0, 1), world(), tmp_path / folder)
        run(pair(12, *order), world(), tmp_path / folder, restart="auto")
    same, other = (
        datasets(tmp_path / folder / "checkpoint_000000012.h5") for folder in ("same", "other")
    )
    assert np.array_equal(same["free.bodies"], other["free.bodies"][::-1])
    assert np.array_equal(same["fluid/f"], other["fluid/f"])
    with pytest.raises(CaseError, match=r"\['one', 'two'\], the case \['one', 'three'\]"):
        run(pair(14, 0, 1, labels=("one", "three")), world(), tmp_path / "same", restart="auto")


def test_checkpoints_without_labels(tmp_path):
    """Those of earlier versions: the bodies are in the order of the case."""
    run(pair(4, 0, 1), world(), tmp_path / "run")
    path = tmp_path / "run" / "checkpoint_000000004.h5"
    with h5py.File(path, "r+") as file:
        del file["free.bodies"].attrs["labels"]  # and the digest at the end
    content = path.read_bytes()
    extent, crc = Extent(0, 1, len(content)), np.array([zlib.crc32(content)])
    path.write_bytes(content + trailer([extent], crc))
    run(pair(12, 0, 1), world(), tmp_path / "run", restart="auto")
    run(pair(12, 0, 1), world(), tmp_path / "whole")
    assert _state(tmp_path / "run") == _state(tmp_path / "whole")


def test_a_replay_restores_the_bodies():
    """The state at a step of a simulation that went back to its last good state is the same."""
    with Simulation(case(outputs=[]), world()) as sim:
        sim.run(5)
        last_good, free = sim.march.watch.last_good, sim.context.solver.moving.free
        last_good.keep(5)
        sim.run(7)
        expected = free.states(12), sim.field("u")
        last_good._go_back(5, 12)
        assert np.array_equal(free.states(12), expected[0])
        assert np.array_equal(sim.field("u"), expected[1])

"""The file of the forces on a body that moves: columns, inertia, restarts."""

import numpy as np
import pytest
from support.body_forces import OUTPUT, flow, rows

from mpilbm.case.case import parse_case
from mpilbm.outputs.body_motion import motion_of
from mpilbm.parallel.ranks import world
from mpilbm.run.run import run

DISC = {"name": "sphere", "centre": [8.7, 6.4], "radius": 2.6}
SWINGS = {"name": "translation", "displacement": ["3*sin(t/20)**2", "t/50"]}
TURNS = {"name": "rotation", "angle": "0.2*sin(t/15)", "point": [14.0, 6.0]}
UNITS = {"cell": "1 mm", "step": "1 ms", "density": "1000 kg/m^3"}


def case(motion, steps=6, **more):
    part = {"label": "a", "shape": DISC, "boundary": {"name": "partially_saturated"}}
    tables = flow("D2Q9", size=[24, 13], body=[part | {"motion": motion}], run={"steps": steps})
    tables["output"] = [OUTPUT, {"name": "checkpoint", "every": 2}]
    return parse_case(tables | {"backend": {"name": "cpu"}} | more, "test.toml")


@pytest.mark.parametrize("motion", [SWINGS, TURNS])
def test_restarts_do_not_show(motion, tmp_path):
    """The rows and the state have the same bits; positions are those of the formula."""
    run(case(motion), world(), tmp_path / "whole")
    run(case(motion, steps=3), world(), tmp_path / "parts")
    run(case(motion), world(), tmp_path / "parts", restart="auto")
    whole, parts = ((tmp_path / each / "forces_a.csv").read_text() for each in ("whole", "parts"))
    assert whole == parts
    for row in rows(tmp_path / "whole" / "forces_a.csv"):
        t = row["step"] + 0.5
        if motion is SWINGS:
            expected = [8.7 + 3 * np.sin(t / 20) ** 2, 6.4 + t / 50, 0.3 * np.sin(t / 10) / 2, 0.02]
        else:
            angle, r = 0.2 * np.sin(t / 15), np.array([8.7 - 14, 6.4 - 6])
            turned = np.array([r[0] * np.cos(angle) - r[1] * np.sin(angle), 0.0])
            turned[1] = r[0] * np.sin(angle) + r[1] * np.cos(angle)
            rate = 0.2 / 15 * np.cos(t / 15)
            expected = [14 + turned[0], 6 + turned[1], -rate * turned[1], rate * turned[0]]
            assert row["angle"] == pytest.approx(angle, abs=1e-14)
        names = ("position_x", "position_y", "velocity_x", "velocity_y")
        assert [row[name] for name in names] == pytest.approx(expected, abs=1e-13)


def test_the_inertia_of_the_fluid_in_the_body():
    """V du/dt and I domega/dt are added, and the torque is about the point of the axis."""
    area = np.pi * 2.6**2
    swings, turns = (motion_of(case(motion), 0) for motion in (SWINGS, TURNS))
    force, torque = swings.corrected(4, np.array([1.0, 2.0]), np.array([0.5]), None)
    gained = 0.15 * (np.sin(5 / 10) - np.sin(4 / 10)) * area
    assert force == pytest.approx([1 + gained, 2], abs=1e-12)
    assert torque == pytest.approx([0.5])
    force, torque = turns.corrected(4, np.zeros(2), np.zeros(1), None)
    rate = [0.2 / 15 * np.cos(t / 15) for t in (4, 5)]
    about_axis = area * (2.6**2 / 2 + 5.3**2 + 0.4**2) * (rate[1] - rate[0])
    assert torque == pytest.approx([about_axis], rel=5e-3)  # the arm turns within the step
    same = turns.corrected(4, np.zeros(2), np.zeros(1), (14.0, 6.0))
    assert same[1] == pytest.approx(torque)


def test_columns_in_si(tmp_path):
    run(case(SWINGS, steps=1, units=UNITS), world(), tmp_path / "run")
    header = (tmp_path / "run" / "forces_a.csv").read_text().splitlines()[0]
    assert header.endswith("position_x_m,position_y_m,velocity_x_m_per_s,velocity_y_m_per_s")
    row = rows(tmp_path / "run" / "forces_a.csv")[1]
    assert row["position_x_m"] == pytest.approx(1e-3 * row["position_x"])
    assert row["velocity_y_m_per_s"] == pytest.approx(row["velocity_y"])

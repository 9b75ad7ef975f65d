"""Cases that run but should not, or not so: each is reported, the most serious first."""

import itertools
import json
from math import pi

import numpy as np
import pytest
from click.testing import CliRunner
from support.findings import DUCT, OUTLET, PERIODIC, REST, SIDES, force, lines, parts_of, tables

from mpilbm.case.case import parse_case
from mpilbm.case.velocity_bounds import initial_ranges
from mpilbm.cli import cli
from mpilbm.core import printable
from mpilbm.core.errors import CaseError
from mpilbm.model.findings import NOTE, SERIOUS, SEVERITIES, WARNING, Finding, in_order
from mpilbm.run.preflight.inspection import inspect
from mpilbm.run.preflight.plan import plan
from mpilbm.solids import geometry_findings

INLET = {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0]}
CHANNEL = {"boundary": [INLET | {"ramp": 560}, OUTLET, SIDES]}


def body(shape, **more):
    return {"label": "it", "shape": shape, "boundary": REST} | more


def block(lower, upper):
    return body({"name": "box", "lower": lower, "upper": upper})


def reynolds(velocity):
    return {"fluid": {"reynolds": 20, "length": 24, "velocity": velocity}}


DISC = {"name": "cylinder", "centre": [20.3, 12.1], "radius": 3}
SUSPICIOUS = {
    "force": (PERIODIC | force(0.01, 0), "serious: force.value: accelerates the flow along x to ab"
              "out 200 cells/step in 20,000 steps (estimate), the Mach number 350; the me"),
    "force in a duct": (DUCT | force(3e-4, 0),
                        "warning: force.value: accelerates the flow along x to about 0.216"),
    "force by a formula": (PERIODIC | force("5e-3*sin(2*pi*y/ny)", 0),
                           "warning: force.value: accelerates the flow along x to about 0.488"),
    "force on a wall": (DUCT | force(0, 1e-2), "serious: force.value: acts along y, where walls"),
    "no outlet": ({"boundary": [INLET, SIDES | {"where": ["x+", "y-", "y+"]}]},
                  "serious: boundary: the velocities at the faces add 1.2 cells per step at t ="
                  " 0, and no face lets this volume out: the mass changes by +2,500"),
    "piston": ({"boundary": [INLET | {"velocity": ["0.01*sin(t/9)", 0]},
                             SIDES | {"where": ["x+", "y-", "y+"]}]},
               "warning: boundary: the velocities at the faces add "),
    "no way to the outlet": (CHANNEL | {"body": [block([20, 0], [25, 24])]},
                             "serious: boundary: a velocity is given at a face of 480 fluid cells "
                             "without a connection to a face that lets the fluid out"),
    "covered inlet": (CHANNEL | {"body": [block([0, 0], [2, 24])]},
                      "serious: boundary.0.where: bodies cover all 24 cells next to the face x-"),
    "estimated": ({"fluid": {"viscosity": 0.001}, "boundary": [
                      {"name": "equilibrium", "where": ["x-"], "rho": 1.05}, OUTLET, SIDES]},
                  "warning: fluid.viscosity: grid Reynolds = 180.3 at the estimated speed 0.18: "
                  "likely unstable: trt was stable"),
    "far too fast": (PERIODIC | force(2.5e-5, 0) | {"fluid": {"viscosity": 1e-3}},
                     "warning: fluid.viscosity: grid Reynolds = 500 at the estimated speed 0.5: "
                     "likely unstable: trt was stable up to 48 and failed at 64 in a periodic "
                     "vortex flow at Mach 0.3; lower the velocity, nothing was measured above Mach "
                     "0.3"),
    "formula": (PERIODIC | {"initial": {"u": ["0.5*sin(2*pi*y/ny)", 0]}},
                "serious: initial.u: the speed 0.4957, Mach number 0.86, is too fast"),
    "two densities": ({"boundary": [INLET | {"velocity": None, "rho": 2.0}, OUTLET, SIDES]},
                      "serious: initial.rho and boundary.0.rho: the densities 1 and 2 differ by 6"),
    "kg/m^3": (PERIODIC | {"initial": {"rho": 998}}, "warning: initial.rho: found 998; mov"),
    "velocity": (CHANNEL | reynolds(0.5e-2), "warning: fluid.velocity: found 0.005, but the largest"
                 " velocity of the flow, boundary.0.velocity, is 0.05: with it the Reynolds number"
                 " is 200 instead of 20"),
    "body without cells": (CHANNEL | {"body": [body(DISC | {"radius": 0.1})]},
                           "serious: body.it: has no cells: no cell centre lies inside it"),
    "covered body": (CHANNEL | {"body": [body(DISC), body(DISC | {"radius": 5}, label="other")]},
                     "serious: body.it: has no cells: later bodies cover all of its 28 cells"),
    "late start": (PERIODIC | {"output": [{"name": "statistics", "every": 10, "begin": 20001}]},
                   "serious: output.0.begin: found begin = 20001, every = 10, and the run has 20,00"
                   "0 steps: no sample is taken"),
    "rare output": (PERIODIC | {"output": [{"name": "monitor", "every": 20001}]},
                    "note: output.0.every: found 20001, and the run has 20,000 steps: only step 0 "
                    "and the last step are written"),
    "narrow": (DUCT | {"body": [block([10, 3], [30, 21])]},
               "serious: channels: 120 fluid cells (20.0% of the fluid) in channels 1 to 3 cells"),
    "unstable": (CHANNEL | {"fluid": {"viscosity": 0.0001}},
                 "serious: fluid.viscosity: grid Reynolds = 500 at the speed 0.05 of boundary.0.vel"
                 "ocity: likely unstable"),
}  # fmt: skip


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_it_is_reported(name):
    more, line = SUSPICIOUS[name]
    more = dict(more)
    if "boundary" in more:
        more["boundary"] = [
            {key: v for key, v in each.items() if v is not None} for each in more["boundary"]
        ]
    found = lines(parse_case(tables(**more), "test.toml"))
    assert [text for text in found if text.startswith(line)], found
    severities = [text.partition(":")[0] for text in found]
    assert severities == sorted(severities, key=["serious", "warning", "note"].index)


def test_a_finding_is_reported_once_and_by_the_number_that_decides():
    """Of both components alone; no tau near 1/2 where the grid Reynolds number is known."""
    more = PERIODIC | {"initial": {"u": ["0.1*sin(2*pi*y/ny)", 0.2]}, "fluid": {"viscosity": 2e-3}}
    (mach, grid) = lines(parse_case(tables(**more), "test.toml"))
    assert "initial.u: the speed 0.223" in mach + grid
    assert "grid Reynolds = 11" in mach + grid


def test_a_mask_has_no_distances(tmp_path):
    np.save(tmp_path / "disc.npy", np.hypot(*np.indices((24, 40)) - 12) < 4)
    rock = {"label": "rock", "mask": "disc.npy", "boundary": {"name": "interpolated"}}
    (found,) = lines(parse_case(tables(**CHANNEL, body=[rock]), tmp_path / "test.toml"))
    assert found.startswith("warning: body.rock.boundary: 'interpolated' uses the distance")


U = 0.05
HARMLESS = {
    "channel": CHANNEL,
    "reynolds": CHANNEL | reynolds(0.05),
    "mean of a profile": CHANNEL | reynolds(0.05 / 1.5),
    "disc": CHANNEL | {"body": [body(DISC)]},
    "step beside the inlet": CHANNEL | {"body": [block([0, 0], [10, 8])]},
    "duct": DUCT | force(8 * 0.1 * U / 24**2, 0),
    "lid": {
        "boundary": [
            SIDES | {"where": ["x-", "x+", "y-"]},
            REST | {"where": ["y+"], "velocity": [U, 0]},
        ]
    },
    "wave": PERIODIC | force(f"{U * 0.1 * (2 * pi / 24) ** 2}*cos(2*pi*y/ny)", 0),
    "oscillating": PERIODIC | force("1e-4*cos(2*pi*t/500)", 0),
    "gradient": PERIODIC | force("1e-3*sin(2*pi*x/nx)", 0),
    "weight": DUCT | force(0, 1e-4),
    "sound": PERIODIC | {"initial": {"rho": "1 + 0.01*sin(2*pi*x/nx)"}},
    "pressure": {"boundary": [OUTLET | {"where": ["x-"], "rho": 1.01}, OUTLET, SIDES]},
    "through the box": {"boundary": [INLET, INLET | {"where": ["x+"]}, SIDES]},
    "force beside a slow wall": DUCT
    | force(2e-5, 0)
    | reynolds(0.05)
    | {"boundary": [SIDES | {"where": ["y-"]}, REST | {"where": ["y+"], "velocity": [0.01, 0]}]},
    "friction velocity": DUCT
    | force(2e-7, 0)
    | {"initial": {"u": [0.05, 0]}}
    | {"fluid": {"reynolds": 1, "length": 24, "velocity": 0.002}},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_nothing_is_reported(name):
    found = lines(parse_case(tables(**HARMLESS[name]), "test.toml"))
    assert [text for text in found if not text.startswith("note: body.it")] == []


@pytest.mark.parametrize("rho", [1e30, "1e30 + x"])
def test_a_density_that_can_never_be_meant_is_refused(rho):
    with pytest.raises(CaseError, match=r"initial.rho: .*1e\+30.* from 1e-30 to 1e\+06"):
        plan(parse_case(tables(**PERIODIC, initial={"rho": rho}), "test.toml"))
    end = OUTLET | {"rho": rho}
    with pytest.raises(CaseError, match=r"boundary.1.rho: .*1e\+30.* from 1e-30 to 1e\+06"):
        parse_case(tables(boundary=[INLET, end, SIDES]), "test.toml")


def test_findings_are_in_order_and_there_once():
    given = (NOTE, "a"), (WARNING, "b"), (SERIOUS, "c"), (WARNING, "a"), (NOTE, "a")
    found = [Finding(severity, "", text) for severity, text in given]
    wanted = ["serious: c", "warning: b", "warning: a", "note: a"]
    assert [each.line for each in in_order(found)] == wanted


@pytest.mark.parametrize("periodic", [[False] * 3, [True, False, True], [False, True, True]])
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_channels_are_runs_of_cells_between_solids_on_any_cut(lattice, periodic, tmp_path):
    size = {"D2Q9": [17, 13], "D3Q19": [8, 9, 10]}[lattice]
    D = len(size)
    solid = np.random.default_rng(3).random(size[::-1]) < 0.12
    np.save(tmp_path / "rock.npy", solid)
    walls = [f"{a}{s}" for a, p in zip("xyz", periodic[:D], strict=False) if not p for s in "-+"]
    more = {"lattice": {"name": lattice}, "domain": {"size": size, "periodic": periodic[:D]}}
    more["boundary"] = [REST | {"where": walls}] if walls else []
    more["body"] = [{"mask": "rock.npy", "boundary": REST}]
    case, wanted = parse_case(tables(**more), tmp_path / "test.toml"), 0
    modes = ["wrap" if p else "constant" for p in periodic[:D][::-1]]
    padded = solid
    for axis, mode in enumerate(modes):
        width = [(4, 4) if axis == a else (0, 0) for a in range(D)]
        fill = {"constant_values": True} if mode == "constant" else {}
        padded = np.pad(padded, width, mode=mode, **fill)
    for cell in itertools.product(*map(range, solid.shape)):
        here = np.array(cell) + 4
        for axis in range(D):
            step = np.eye(D, dtype=int)[axis]
            a, b = (
                next((k for k in range(1, 5) if padded[tuple(here + s * k * step)]), 5)
                for s in (-1, 1)
            )
            if not padded[tuple(here)] and a + b - 1 <= 3:
                wanted += 1
                break
    for slabs in (1, 2, 5, case.shape[0]):
        parts = parts_of(case, slabs)
        assert sum(part.narrow.cells for part in parts) == wanted > 0
        assert inspect(case, parts, initial_ranges(case)) == plan(case).findings


@pytest.mark.parametrize(
    ("viscosity", "sides", "y_plus"),
    [(1e-4, "bounce_back", "17"), (1e-3, "bounce_back", ""), (1e-4, "free_slip", "")],
)
def test_turbulent_ducts_in_coarse_cells_are_reported(viscosity, sides, y_plus):
    """Re = 5000 and 500; y+ = U sqrt(f / 8) / (2 nu) with f = 0.0375 by Haaland's formula."""
    case = tables(
        lattice={"name": "D3Q27"},
        domain={"size": [20, 10, 10]},
        fluid={"viscosity": viscosity},
        collision={"name": "cumulant"},
        boundary=[
            INLET | {"velocity": [0.05, 0, 0], "ramp": 280},
            OUTLET,
            {"name": sides, "where": ["y-", "y+", "z-", "z+"]},
        ],
    )
    found = [line for line in lines(parse_case(case)) if "y+ of the first cell" in line]
    assert len(found) == bool(y_plus)
    assert all(
        f"y+ of the first cell is about {y_plus}, as in a smooth pipe" in line for line in found
    )


def test_run_reports_what_check_reports_and_keeps_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = tables(**CHANNEL | {"body": [block([0, 0], [2, 24])], "run": {"steps": 3}})
    (tmp_path / "it.toml").write_text(printable.dumps(case))
    wanted = lines(parse_case(case, "it.toml"))
    assert len(wanted) > 1
    for verb in ("check", "run"):
        result = CliRunner().invoke(cli, [verb, "it.toml"])
        severe = tuple(f"{severity}:" for severity in SEVERITIES)
        said = [line for line in result.output.splitlines() if line.startswith(severe)]
        assert said == wanted, result.output
    kept = json.loads((tmp_path / "it.out" / "summary.json").read_text())["findings"]
    assert [Finding(**each).line for each in kept] == wanted


def test_a_restart_does_not_look_at_the_initial_fields(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = tables(**SUSPICIOUS["formula"][0] | {"run": {"steps": 2}})
    case["output"] = [{"name": "checkpoint", "every": 1}]
    (tmp_path / "it.toml").write_text(printable.dumps(case))
    first = CliRunner().invoke(cli, ["run", "it.toml"])
    again = CliRunner().invoke(cli, ["run", "it.toml", "--restart", "auto"])
    assert ["initial.u" in each.output for each in (first, again)] == [True, False]


def test_a_large_box_is_looked_at_in_part(monkeypatch):
    """Evenly spaced planes of the initial fields; all of them in small boxes."""
    seen = []
    case = parse_case(tables(**SUSPICIOUS["formula"][0]), "test.toml")
    kind = type(case.fluids[0].initial)

    def evaluate(self, shape, begin, end):
        seen.append((begin, end))
        return np.ones((1, 1, 4)), np.zeros((1, 1, 4, 2))

    monkeypatch.setattr(kind, "evaluate", evaluate)
    initial_ranges(case)
    monkeypatch.setattr("mpilbm.case.velocity_bounds.SAMPLED_CELLS", 40 * 6)
    initial_ranges(case)
    assert seen == [(0, 24), *((k, k + 1) for k in (2, 6, 10, 14, 18, 22))]


def test_of_ranks_without_fluid():
    (found,) = geometry_findings.idle([0, 5, 7])
    assert found.line.startswith("warning: ranks: the slabs of 1 of 3 ranks (0) hold no fluid")

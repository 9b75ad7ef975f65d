"""The cell and step that `check` proposes for a case with [units]."""

import tomllib

import numpy as np
import pytest

from mpilbm.case.case import parse_case
from mpilbm.core.units import VELOCITY, VISCOSITY, mach, tau_from_viscosity
from mpilbm.run.preflight.plan import plan
from mpilbm.run.proposal import costs, of_case
from mpilbm.run.proposal.resolution import resolution
from mpilbm.run.proposal.scheme import Resolution, collision

CASE = """
[lattice]
name = "D2Q9"
[domain]
size = ["20 cm", "8 cm"]
[units]
cell = "1 mm"
velocity = "1 m/s"
fluid = "water"
[collision]
name = "trt"
[[boundary]]
name = "bounce_back"
where = ["y-", "y+"]
[[boundary]]
name = "equilibrium"
where = ["x-"]
velocity = ["0.01 m/s", 0]
[[boundary]]
name = "equilibrium"
where = ["x+"]
rho = "0 Pa"
[run]
steps = "5 s"
"""


def proposed(text):
    report = plan(parse_case(tomllib.loads(text)))
    return {line.what: (line.value, line.verdict) for line in report.sections["proposal"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"1 m/s"', '"0.2 m/s"'),  # cells stay, u/nu = 10 is stable only in finer ones
        ('"0.01 m/s"', '"0.1 m/s"'),
        ('fluid = "water"', 'density = 1\n[fluid]\nviscosity = "1e-2 m^2/s"'),  # tau = 30
    ],
)
def test_the_proposal_is_slow_and_stable(old, new):
    text = CASE.replace(old, new)
    case = parse_case(tomllib.loads(text))
    speed = case.boundaries[1].velocity[0]
    assert of_case.present(case, case.units, speed) is None or old.startswith("fluid")
    found = of_case.propose(case, case.units, speed)
    nu = found.units.to_lattice(case.units.to_si(case.fluids[0].viscosity, VISCOSITY), VISCOSITY)
    u = found.units.to_lattice(case.units.to_si(speed, VELOCITY), VELOCITY)
    assert mach(u) <= 0.1
    assert tau_from_viscosity(nu) <= 1
    assert max(mach(u) / 0.1, tau_from_viscosity(nu)) > 0.98  # the longest such step
    assert of_case.is_stable(case, nu, u)
    for cells, before in zip(found.size, case.domain.size, strict=True):
        assert cells * found.units.cell == pytest.approx(before * case.units.cell, rel=1e-9)
    assert found.steps * found.units.step == pytest.approx(5, rel=1e-3)


@pytest.mark.parametrize(
    ("collision", "speed", "unit", "size"),
    [
        ("central_moment", "1 m/s", "10 m/s", (600, 240)),
        ("trt", "0.1 m/s", "1 m/s", (200, 80)),
    ],
)
def test_the_proposed_values_satisfy_check(collision, speed, unit, size):
    """Finer cells or, if it needs fewer of them, another collision."""
    text = CASE.replace('"1 m/s"', f'"{unit}"').replace('"0.01 m/s"', f'"{speed}"')
    text = text.replace('"trt"', f'"{collision}"')
    lines = proposed(text)
    others = {"collision"} if collision == "trt" else set()
    assert set(lines) == {"cell", "step", "memory", "run time"} | others
    assert lines["cell"][1].startswith(f"{size[0]}, {size[1]} cells")
    again = text.replace('cell = "1 mm"', f"cell = {lines['cell'][0]}")
    again = again.replace(f'velocity = "{unit}"', f"step = {lines['step'][0]}")
    for key in others:
        again = again.replace('[collision]\nname = "trt"', "")
        again = f"{key} = {lines[key][0]}\n{again}"
    case = parse_case(tomllib.loads(again))
    assert case.domain.size == size
    assert of_case.present(case, case.units, case.boundaries[1].velocity[0])


def test_the_proposed_size_is_one_that_the_lattice_accepts():
    """Even numbers of cells on D3Q13."""
    tables = {
        "lattice": {"name": "D3Q13"},
        "collision": {"name": "mrt"},
        "domain": {"size": ["1 cm"] * 3, "periodic": [True] * 3},
        "units": {"cell": "1 mm", "step": "10 ms", "density": 1000},
        "fluid": {"viscosity": "1e-6 m^2/s"},
        "initial": {"u": ["0.05 m/s", 0, 0]},
        "run": {"steps": 10},
    }
    lines = {line.what: line.value for line in plan(parse_case(tables)).sections["proposal"]}
    tables["units"] |= {key: lines[key].strip('"') for key in ("cell", "step")}
    assert parse_case(tables).domain.size == (14, 14, 14)


def test_values_that_are_fine_are_kept():
    text = CASE.replace('fluid = "water"', 'density = 1\n[fluid]\nviscosity = "1e-4 m^2/s"')
    lines = proposed(text)
    assert lines["cell, step"][0] == "as given"
    assert "5,000 steps" in lines["run time"][1]


def test_no_proposal_without_a_speed():
    text = CASE.replace('velocity = ["0.01 m/s", 0]', "rho = 1")
    assert "the case gives no speed" in proposed(text)["none"][1]


def test_no_proposal_if_no_cell_is_stable():
    text = CASE.replace('"0.01 m/s"', '"9 m/s"').replace("20 cm", "2 m").replace("8 cm", "0.8 m")
    text = text.replace('cell = "1 mm"', 'cell = "2 cm"').replace('"1 m/s"', '"90 m/s"')
    given = 'name = "trt"\nclosure = {name = "smagorinsky"}'
    for case in (text, text.replace('name = "trt"', given)):
        lines = proposed(case)
        verdict = lines["none"][1]
        assert "no cell from 0.000313 m on is stable; there likely unstable: trt" in verdict
        assert "use a finer box or a lower Reynolds number" in verdict
        assert "closure" not in verdict
        assert set(lines) == {"none", "change"}


def test_without_a_proposal_check_says_what_to_change():
    """The advice, followed: the cells with the named collision, or the lower speed."""
    text = CASE.replace('"0.01 m/s"', '"9 m/s"').replace("20 cm", "2 m").replace("8 cm", "0.8 m")
    text = text.replace('cell = "1 mm"', 'cell = "2 cm"').replace('"1 m/s"', '"90 m/s"')
    value, how = proposed(text)["change"]
    assert value == 'cell = "3.21e-05 m"'
    assert how.startswith("62,291 x 24,917 cells, for the same box, with central_moment on D2Q9")
    finer = text.replace('cell = "2 cm"', value).replace('"trt"', '"central_moment"')
    case = parse_case(tomllib.loads(finer))
    assert case.domain.size == pytest.approx((62291, 24917), rel=1e-3)
    again = of_case.propose(case, case.units, case.boundaries[1].velocity[0])
    assert again.size == case.domain.size
    assert "lower the speed to 0.0144 m/s" in how
    slow = proposed(text.replace('"9 m/s"', '"0.0144 m/s"'))
    assert slow["collision"][0] == '{name = "central_moment"}'
    assert slow["cell, step"][0] == "as given"


def test_without_measured_collisions_check_says_so(monkeypatch):
    """As on a lattice of a plug-in."""
    monkeypatch.setattr(of_case, "_lattices", lambda case: [])
    text = CASE.replace('"0.01 m/s"', '"9 m/s"').replace("20 cm", "20 m").replace("8 cm", "8 m")
    text = text.replace('cell = "1 mm"', 'cell = "2 cm"').replace('"1 m/s"', '"90 m/s"')
    assert "was measured" in proposed(text)["change"][1]


CAR = """
[lattice]
name = "D3Q27"
[units]
cell = "25 mm"
velocity = "690 m/s"
fluid = "air"
[domain]
size = ["1 m", "60 cm", "50 cm"]
[collision]
name = "cumulant"
[[boundary]]
name = "equilibrium"
where = ["x-"]
velocity = ["39 m/s", 0, 0]
[[boundary]]
name = "characteristic"
where = ["x+"]
rho = 1.0
[[boundary]]
name = "free_slip"
where = ["y-", "y+", "z+"]
[[boundary]]
name = "bounce_back"
where = ["z-"]
velocity = ["39 m/s", 0, 0]
[[body]]
label = "car"
shape = {name = "box", lower = ["30 cm", "20 cm", "5 cm"], upper = ["50 cm", "40 cm", "20 cm"]}
boundary = {name = "bounce_back"}
[run]
steps = "1 s"
"""


def test_a_car_gets_a_scheme_its_cost_and_a_verdict():
    """Cumulants were unstable in cavities, by which they are judged above a road."""
    report = plan(parse_case(tomllib.loads(CAR)), gpu_memory=80)
    lines = {line.what: (line.value, line.verdict) for line in report.sections["proposal"]}
    table = tomllib.loads(f"c = {lines['collision'][0]}")["c"]
    assert table == collision(Resolution("external", 1e5, 8, modelled=False))
    assert "lattice" not in lines
    assert lines["cell, step"][0] == "as given"
    assert lines["walls"][1].startswith("not resolved, and without a wall model")
    assert lines["accuracy"][0].startswith("not trustworthy: c_d was 2.7 times too large")
    assert "Ahmed body, Re 2.78e+06, 40 cells" in lines["accuracy"][1]
    assert lines["GPUs"] == ("1", "of 80 GB")
    assert "GLUPS per GPU" in lines["run time"][1]


@pytest.mark.parametrize(
    ("parts", "length", "kind"),
    [
        (("body",), 8.0, "external"),
        ((), 20.0, None),
        (("walls",), 20.0, "internal"),
        (("body", "wide"), 0, None),
        (("body", "long"), 20.0, "internal"),
        (("body", "mask"), 0, None),
    ],
)
def test_the_length_of_a_flow_is_that_of_its_body_or_of_its_passage(
    parts, length, kind, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    tables = tomllib.loads(CAR)
    tables["boundary"][2]["where"] += ["z-"]
    del tables["boundary"][3]
    if "body" not in parts:
        del tables["body"]
    if "walls" in parts:
        tables["boundary"][2]["name"] = "bounce_back"
    if "wide" in parts:
        tables["body"][0]["shape"]["upper"] = ["50 cm", "58 cm", "48 cm"]
    if "long" in parts:
        tables["body"][0]["shape"]["upper"] = ["50 cm", "70 cm", "48 cm"]
    if "mask" in parts:
        np.save("mask.npy", np.zeros((20, 24, 40), np.uint8))
        tables["body"][0] = {"mask": "mask.npy", "boundary": {"name": "bounce_back"}}
    case = parse_case(tables)
    flow = resolution(case, 0.05)
    if kind is None:
        assert flow is None
        return
    assert flow.kind == kind
    assert flow.cells == pytest.approx(length)
    assert flow.reynolds == pytest.approx(0.05 * length / case.fluids[0].viscosity)
    assert flow.flat == ("body" not in parts)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "3 s"), (117, "120 s"), (300, "5 min"), (9000, "2.5 h"), (864000, "10 days")],
)
def test_durations(seconds, text):
    assert costs.duration(seconds) == text

"""What `layout = "auto"` chooses is accepted by name; populations have the bits of `ab`.

More than 20 s: more than a thousand cases are checked.
"""

import json
import shutil
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pytest
from support import ROOT
from support.pairs import all_pairs, label
from support.settings import OPTIONS, SETTINGS
from support.slabs import PRECISIONS, box

from mpilbm.case.case import Case, load_case, parse_case
from mpilbm.case.checks import problems_with
from mpilbm.core import printable
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, make, names
from mpilbm.layouts.auto import RULES, Auto, Facts
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

CASES = sorted(path.name for path in ROOT.glob("cases/*.toml"))
FACTS = [  # each rule of `auto` applies to one of them
    Facts(device, 10**6, (lambda layout, fits=fits: fits), saved, lambda layout: layout.sweep)
    for device, fits, saved in product(("cpu", "cuda", "opencl"), (True, False), (-1.0, 0.9))
]
FACTS += [replace(each, swept=lambda layout: False) for each in FACTS]
MORE = {  # what a layout may refuse, in addition to the other options
    "nothing": {},
    "scalar": {"scalar": [{"label": "T", "diffusivity": 0.05}]},
    "coupling": {"coupling": {"name": "shan_chen", "G": -5.0}},
    "iterate": {"initial": {"iterate": 10}},
}
KINDS = {
    "lattice": ["D2Q9", "D3Q13", "D3Q19"],  # one is staggered
    "collision": ["trt", "mrt", "regularized"],  # one has no moments above the second order
    "setting": OPTIONS["setting"],
    "precision": OPTIONS["precision"],
    "more": list(MORE),
}


def tables(lattice, collision, setting, precision, more) -> dict:
    """The tables of a case; the checks may refuse it whatever its layout is."""
    case = box(
        lattice,
        **SETTINGS[setting](lattice),
        collision={"name": collision},
        precision=PRECISIONS[precision],
    )
    if "force" in case:
        case["force"]["name"] = (find("collisions", collision).forces or ["guo"])[0]
    return case | MORE[more]


def accepted(case: dict, layout: str) -> str:
    """The problems of a case that names a layout."""
    try:
        parse_case(case | {"layout": {"name": layout}}, "case.toml")
    except CaseError as error:
        return str(error)
    return ""


def usual(choice: dict) -> bool:
    """Whether the case is one for `auto`."""
    return not accepted(tables(**choice), "auto")


def choices(case) -> set[str]:
    """The layouts that `auto` may choose for a case, on any device with any memory."""
    allowed = cache(lambda layout: not problems_with(case, layout=layout))
    return {Auto().resolve(facts, allowed)[0].name for facts in FACTS}


def test_facts_have_each_rule():
    free = lambda layout: True  # noqa: E731
    found = {Auto().resolve(facts, free) for facts in FACTS}
    assert {why for _, why in found} == {rule.why for rule in RULES[:-1]}
    only = lambda layout: layout.name == "moments"  # noqa: E731
    found = {Auto().resolve(facts, only) for facts in FACTS}
    assert {why for _, why in found} == {RULES[1].why, RULES[-1].why}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Path:
    """A copy of cases/ with the rock that two of them need."""
    folder = tmp_path_factory.mktemp("cases")
    shutil.copytree(ROOT / "cases", folder, dirs_exist_ok=True)
    np.save(folder / "rock.npy", np.zeros((128, 128, 128), bool))
    return folder


@pytest.mark.parametrize("name", CASES)
def test_a_shipped_case_accepts_by_name_what_auto_chooses(shipped, name):
    case = load_case(shipped / name, {"layout.name": "auto"})
    for layout in choices(case):
        assert load_case(shipped / name, {"layout.name": layout}).layout.name == layout


def test_a_case_accepts_by_name_what_auto_chooses():
    """All rules about layouts are in `Layout.conflicts`: naming a layout is refused by no other.

    One test, since reading the 720 cases of which it takes the pairs is longer than the checks:
    as parameters they would be read by every process that collects this file.
    """
    for choice in all_pairs(KINDS, usual):
        given, which = tables(**choice), label(choice)
        case = parse_case(given | {"layout": {"name": "auto"}}, "case.toml")
        assert all(not accepted(given, layout) for layout in choices(case)), which
        for name in names("layouts"):
            named_is_judged_by_its_conflicts(given, case, name, which)


def named_is_judged_by_its_conflicts(given: dict, case: Case, name: str, which: str) -> None:
    layout = make("layouts", name)
    wanted = case.model_copy(update={"layout": layout})
    refused = accepted(given, name)
    conflicts, problems = layout.conflicts(wanted), layout.problems(wanted)
    assert bool(refused) == bool(conflicts) == bool(problems), (which, name)
    for problem in refused.splitlines():
        assert problem.startswith(f"case.toml: layout.name: '{name}' "), (which, name)
        others = problem.rpartition("; allowed layouts: ")[2].split(", ")
        assert all(not accepted(given, other) for other in others), (which, name)


CENTRE, RADIUS = [12.13, 11.6], 8.0
ROD = {
    "label": "rod",
    "shape": {"name": "cylinder", "centre": CENTRE, "radius": RADIUS},
    "boundary": {"name": "bounce_back"},
}
HEATED = ROD | {"scalar": {"T": {"value": 1.0}}}
RUNS = {  # more than 8 % of the cells are solid: (tables, the choice on a CPU)
    "force": ({"force": {"name": "guo", "value": [1e-5, 0]}, "body": [ROD]}, "indirect"),
    "scalar": ({"scalar": [{"label": "T", "diffusivity": 0.05}], "body": [HEATED]}, "aa"),
    "coupling": ({"coupling": {"name": "shan_chen", "G": -5.0}, "body": [ROD]}, "aa"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_with_auto_has_the_bits_of_ab(tmp_path, name):
    """By the path of a user: a case file, as many steps as `auto` requires, and a run."""
    more, expected = RUNS[name]
    common = {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [24, 24], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1},
        "run": {"steps": 100},
        "backend": {"name": "cpu"},
        "output": [{"name": "checkpoint", "every": 100}],
    }
    path, states = tmp_path / "case.toml", []
    path.write_text(printable.dumps(common | more))
    for layout in ("auto", "ab"):
        folder = tmp_path / f"{layout}.out"
        run(load_case(path, {"layout.name": layout}), Serial(), folder)
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["layout"] == (expected if layout == "auto" else "ab")
        states.append(checkpoint(folder / "checkpoint_000000100.h5"))
    assert states[0].keys() == states[1].keys()
    fluid = np.hypot(*(np.mgrid[:24, :24] + 0.5 - np.array(CENTRE[::-1])[:, None, None])) >= RADIUS
    for key, values in states[0].items():  # (ny, Q, 1, nx)
        found, wanted = (
            np.moveaxis(each[:, :, 0], 1, 2)[fluid] for each in (values, states[1][key])
        )
        assert np.array_equal(found, wanted), key


def checkpoint(path: Path) -> dict[str, np.ndarray]:
    """The populations in a checkpoint, by their place in the file."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda key, each: found.update({key: each[()]}) if key.endswith("/f") else None
        )
    assert found
    return found

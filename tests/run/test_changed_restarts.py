"""A restart with any key changed, beside boundaries that keep a state: done, or refused."""

import os

import h5py
import numpy as np
import pytest
from support.faces import closed, table

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import find, make, names
from mpilbm.layouts.formats import Formats
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

KEEPING = [
    name
    for name in names("boundaries")
    if find("boundaries", name).model_construct().state(make("lattices", "D2Q9"))
]
BALL = {"shape": {"name": "sphere", "centre": [4, 6], "radius": 1.5}}
REFUSED = "state of boundaries|do not act on the cells|bodies are not those"
# What changes, and what a refusal must say; "" where the run must go on.
CHANGES = {
    "compute in double": ({"precision": {"compute": "float64"}}, ""),
    "viscosity": ({"fluid": {"viscosity": 0.05}}, ""),
    "storage": ({"precision": {"storage": "float64"}}, "precision.storage = float32, the case"),
    "offset": ({"precision": {"offset": False}}, "precision.offset = True, the case False"),
    "size": ({"domain": {"size": [8, 11], "periodic": [False, False]}}, "size = "),
    "lattice": (
        {"lattice": {"name": "D3Q19"}, "domain": {"size": [8, 13, 3], "periodic": [False] * 3}},
        "lattice = D2Q9, the case D3Q19",
    ),
    "collision": ({"collision": {"name": "bgk"}}, ""),
    "force": ({"force": {"name": "guo", "value": [1e-6, 0]}}, ""),
    "moments": ({"layout": {"name": "moments"}}, ""),
    "aa": ({"layout": {"name": "aa"}}, ""),
    "esopull": ({"layout": {"name": "esopull"}}, ""),
    "indirect": ({"layout": {"name": "indirect"}}, ""),
    "closure": (
        {"collision": {"name": "trt", "closure": {"name": "smagorinsky", "constant": 0.1}}},
        "",
    ),
    "equilibrium": ({"collision": {"name": "bgk", "equilibrium": {"name": "incompressible"}}}, ""),
    "body": ({"body": [BALL | {"boundary": {"name": "bounce_back"}}]}, REFUSED),
    "initial": ({"initial": {"u": [0.0, 0.0]}}, ""),
    "other walls": ({"boundary": "bounce_back"}, REFUSED),
    "moved": ({"boundary": ("x-", "y-")}, REFUSED),
    "periodic": (
        {"domain": {"size": [8, 13], "periodic": [True, False]}, "boundary": "y"},
        "",
    ),
}
FEW = ("compute in double", "other walls")


def tables(name: str, changed: dict, steps: int) -> dict:
    """A box with this boundary on one face, and bounce back on the others."""
    where, walls = "y-", ["x-", "x+", "y+"]
    boundary = changed.get("boundary")
    if boundary == "y":
        walls = ["y+"]
    elif isinstance(boundary, tuple):
        where, walls = "x-", ["y-", "x+", "y+"]
    walls += ["z-", "z+"] if "lattice" in changed else []
    kept = table("bounce_back" if boundary == "bounce_back" else name, where, D=2)
    usual = {"precision": {}, "output": [], "run": {"steps": steps}, "backend": {"name": "cpu"}}
    found = closed("D2Q9", [8, 13], [kept, table("bounce_back", *walls, D=2)], **usual)
    found["initial"] = {} if "lattice" in changed else found["initial"]
    return found | {key: value for key, value in changed.items() if key != "boundary"}


@pytest.fixture(scope="module", params=KEEPING)
def begun(request, tmp_path_factory):
    """The name of a boundary, and the checkpoint of a run with it."""
    folder = tmp_path_factory.mktemp(request.param)
    case = tables(request.param, {"output": [{"name": "checkpoint", "every": 3}]}, 3)
    run(parse_case(case, "a.toml"), Serial(), folder)
    return request.param, folder / "checkpoint_000000003.h5"


@pytest.mark.parametrize("change", CHANGES if "MPILBM_TEST_ALL" in os.environ else FEW)
def test_a_changed_key_is_supported_or_refused(begun, tmp_path, change):
    (name, path), (changed, sentence) = begun, CHANGES[change]
    changed = {"output": [{"name": "checkpoint", "every": 3}]} | changed
    case = parse_case(tables(name, changed, 6), "a.toml")
    if sentence:
        with pytest.raises(CaseError, match=sentence):
            run(case, Serial(), tmp_path / "out", restart=path)
        return
    assert run(case, Serial(), tmp_path / "out", restart=path) == "done"
    with h5py.File(tmp_path / "out/checkpoint_000000006.h5") as file:
        kept = [file[group]["values"][()] for group in file if group.startswith("boundary.")]
        assert np.isfinite(file["fluid/f"][()]).all()
    assert len(kept) == 1
    assert kept[0].dtype == case.precision.compute
    assert np.any(kept[0])


def test_files_without_the_tails_of_16_bit_values_are_refused(tmp_path, monkeypatch):
    """As those of earlier versions, whose last bits meant something else."""
    changed = {"output": [{"name": "checkpoint", "every": 3}], "layout": {"name": "moments"}}
    changed |= {"precision": {"storage": "float16"}, "collision": {"name": "regularized"}}
    periodic = {"domain": {"size": [8, 13], "periodic": [True, True]}, "boundary": []}
    case = tables(KEEPING[0], changed, 6) | periodic
    with monkeypatch.context() as earlier:
        earlier.setattr(Formats, "tail_text", "")
        run(parse_case(case | {"run": {"steps": 3}}, "a.toml"), Serial(), tmp_path / "out")
    path = tmp_path / "out/checkpoint_000000003.h5"
    with pytest.raises(CaseError, match="tails of 16-bit values = , the case "):
        run(parse_case(case, "a.toml"), Serial(), tmp_path / "new", restart=path)


def test_values_in_16_bits_are_not_converted_to_another_layout(tmp_path):
    changed = {"output": [{"name": "checkpoint", "every": 3}], "layout": {"name": "moments"}}
    changed |= {"precision": {"storage": "float16"}, "collision": {"name": "regularized"}}
    changed |= {"domain": {"size": [8, 13], "periodic": [True, True]}, "boundary": []}
    case = tables(KEEPING[0], {}, 3) | changed
    run(parse_case(case, "a.toml"), Serial(), tmp_path / "out")
    path = tmp_path / "out/checkpoint_000000003.h5"
    case |= {"layout": {"name": "ab"}, "run": {"steps": 6}}
    found = "values in a cell = 6, the case 9; .*; values in 16 bits are not converted"
    with pytest.raises(CaseError, match=found):
        run(parse_case(case, "a.toml"), Serial(), tmp_path / "out", restart=path)

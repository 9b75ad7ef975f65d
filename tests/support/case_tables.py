"""Two small cases, their tables, and the problems found after a change."""

import tomllib

import pytest
from pydantic import Field

from mpilbm.case.case import parse_case
from mpilbm.core import registry
from mpilbm.core.errors import CaseError
from mpilbm.core.registry import Parameters
from mpilbm.outputs import Output

BASE = """
title = "Box"
[lattice]
name = "D3Q19"
[domain]
size = [5, 4, 13]
periodic = [true, true, false]
[fluid]
viscosity = 0.02
[[boundary]]
name = "bounce_back"
where = ["z-"]
[[boundary]]
name = "bounce_back"
where = ["z+"]
velocity = [0.1, 0, 0]
[[body]]
label = "ball"
shape = {name = "sphere", centre = [2, 2, 6], radius = 1.5}
boundary = {name = "bounce_back"}
[[output]]
name = "stand_in"
every = 10
[run]
steps = 100
"""
PLANE = BASE.replace("[5, 4, 13]", "[5, 13]").replace("[true, true, false]", "[true, false]")
PLANE = PLANE.replace("D3Q19", "D2Q9").replace("[0.1, 0, 0]", "[0.1, 0]").replace("2, 2, 6", "2, 6")
PLANE = PLANE.replace('"z', '"y')


class StandIn(Output):
    """An output with its own check of the case."""

    every: int = Field(gt=0)
    fields: tuple[str, ...] = ()

    def problems(self, case):
        return (
            [f"every: {self.every} is more than the steps"] if self.every > case.run.steps else []
        )


class OtherStandIn(Parameters):
    """A coupling without parameters."""


def register_stand_ins():
    """Register an output and a coupling for the tests."""
    registry.register("outputs", "stand_in")(StandIn)
    registry.register("couplings", "stand_in_too")(OtherStandIn)


def tables(text=BASE, **changes):
    """The tables of a text with some replaced; None removes a table."""
    merged = tomllib.loads(text) | changes
    return {key: value for key, value in merged.items() if value is not None}


def problems(text=BASE, **changes):
    """The problems of a case that must be refused, without the name of the file."""
    with pytest.raises(CaseError) as error:
        parse_case(tables(text, **changes), "cases/box.toml")
    assert error.value.exit_code == 2
    assert all(line.startswith("cases/box.toml: ") for line in error.value.problems)
    return [line.removeprefix("cases/box.toml: ") for line in error.value.problems]


def changed(path, value, text=BASE):
    """The problems after one key is set, as with --set."""
    data = tables(text)
    here, *rest = data, *path.split(".")
    for part in rest[:-1]:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    here[int(rest[-1]) if isinstance(here, list) else rest[-1]] = value
    return problems("", **data)


def write(tmp_path, text=BASE):
    path = tmp_path / "box.toml"
    path.write_text(text)
    return path


WATER = {"label": "water", "viscosity": 0.1, "force": {"name": "guo", "value": [0, 0, -1e-5]}}
OIL = {"label": "oil", "reynolds": 10, "length": 10, "velocity": 0.1, "initial": {"rho": "1+x/nx"}}

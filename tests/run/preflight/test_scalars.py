"""`mpilbm check` shows scalars, and counts the messages that a run sends for them."""

import pytest
from support import ROOT
from support.scalars import carried, flow, setting
from support.slabs import Cluster

from mpilbm.case.case import load_case, parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel import slabs
from mpilbm.run.preflight.plan import plan
from mpilbm.run.preflight.rank_memory import halo_bytes


def test_the_heated_cavity_has_its_numbers():
    report = plan(load_case(ROOT / "cases" / "heated_cavity.toml"))
    lines = {line.what: line for line in report.sections["scalar T"]}
    assert lines["Rayleigh"].value == "1e+05"
    assert lines["Prandtl or Schmidt"].value == "0.71"
    assert lines["boundary y- y+"].value == "adiabatic"


@pytest.mark.parametrize(("lattice", "layout"), [("D2Q9", "ab"), ("D3Q19", "esopull")])
def test_messages_of_scalars_are_counted(lattice, layout):
    tables = flow(lattice, layout, "single", **setting("walls", int(lattice[1])))
    case = parse_case(tables, "test.toml")
    one, *_ = slabs.split(case.shape, 2, case.domain.periodic[-1])
    sent = []
    for work in Cluster(tables, 2).solvers[0].work:
        (step,) = work.passes
        sent.append(4 * sum(piece.size for _, piece, _ in step.exchange._sends))
    assert halo_bytes(case, one)[0] == max(sent)


def test_a_wrong_scalar_is_the_only_problem():
    tables = flow(scalars=[carried(prandtl=-1)], buoyancy={"gravity": [0, -1e-4], "T": {"beta": 1}})
    with pytest.raises(CaseError) as error:
        parse_case(tables | {"output": [{"name": "snapshot", "fields": ["T"]}]}, "test.toml")
    (problem,) = error.value.problems
    assert "prandtl" in problem

"""Cases for the findings of `mpilbm check`, and the findings as text."""

from mpilbm.case.case_findings import of_case
from mpilbm.model.findings import in_order
from mpilbm.parallel.slabs import split
from mpilbm.run.preflight.plan import plan
from mpilbm.solids import build, diagnose

REST = {"name": "bounce_back"}
SIDES = REST | {"where": ["y-", "y+"]}
OUTLET = {"name": "equilibrium", "where": ["x+"], "rho": 1.0}
PERIODIC = {"domain": {"size": [40, 24], "periodic": [True, True]}}
DUCT = {"domain": {"size": [40, 24], "periodic": [True, False]}, "boundary": [SIDES]}


def tables(**more) -> dict:
    return {
        "lattice": {"name": "D2Q9"},
        "domain": {"size": [40, 24]},
        "fluid": {"viscosity": 0.1},
        "collision": {"name": "trt"},
        "run": {"steps": 20000},
        "backend": {"name": "cpu"},
    } | more


def force(*value):
    return {"force": {"name": "guo", "value": list(value)}}


def lines(case) -> list[str]:
    return [found.line for found in plan(case).findings]


def warnings_of(case) -> tuple[str, ...]:
    """The findings from numbers and formulas alone as sentences, the most serious first."""
    return tuple(map(str, in_order(of_case(case))))


def parts_of(case, slabs):
    parts = []
    for slab in split(case.shape, slabs, case.domain.periodic[-1]):
        build.build(case, slab, lambda *of: parts.append(diagnose.find(*of)))
    return parts

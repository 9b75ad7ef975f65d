"""The scalars of a case, from the tables of its file."""

from collections.abc import Iterator
from typing import Any

from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.model import Case
from mpilbm.case.scalars.model import Scalar
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.scalars import USUAL, ScalarTable
from mpilbm.formulas.parser import Formula, FormulaError
from mpilbm.formulas.values import names_in
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.registry import make

MOST = 1e300  # a diffusivity that the checks refuse, in place of an infinite one
INSTEAD = 0.01


def scalars_of(file: CaseFile, case: Case) -> dict[str, Any]:
    """The fields `scalars` and `buoyancy` of a case."""
    (fluid, *others) = case.fluids
    if fluid.formula:
        fluid = fluid.model_copy(update={"viscosity": _at_centre(file, case, fluid.formula)})
        case = case.model_copy(update={"fluids": (fluid, *others)})
    scalars = tuple(_scalar(case, k, table) for k, table in enumerate(file.scalar))
    return {"scalars": scalars, "buoyancy": file.buoyancy, "fluids": case.fluids}


def _at_centre(file: CaseFile, case: Case, formula: str) -> float:
    """The viscosity at the centre of the box at t = 0; INSTEAD if it is not a positive number."""
    box = {f"n{axis}": n for axis, n in zip("xyz", case.domain.size, strict=False)}
    place = {axis: n / 2 for axis, n in zip("xyz", case.domain.size, strict=False)}
    known: dict[str, Any] = {**box, **place, "t": 0.0}
    names = names_in(case.dimensions)
    try:
        for table in file.scalar:
            value = table.initial.value
            text = value if isinstance(value, str) else repr(value)
            known[table.label] = float(Formula(text, names).evaluate(**known))
        labels = tuple(table.label for table in file.scalar)
        found = float(Formula(formula, (*names, *labels)).evaluate(**known))
    except FormulaError:  # reported by the checks
        return INSTEAD
    return found if 0 < found < MOST else INSTEAD


def _scalar(case: Case, number: int, table: ScalarTable) -> Scalar:
    nu, key = case.fluids[0].viscosity, f"scalar.{number}"
    ratio = table.prandtl or table.schmidt
    usual = USUAL.get(case.dimensions, "D3Q7")
    still = (0.0,) * case.dimensions
    return Scalar(
        label=table.label,
        key=key,
        diffusivity=min(nu / ratio, MOST) if ratio else table.diffusivity,
        lattice=table.lattice or make("scalar_lattices", usual),
        collision=table.collision,
        source=table.source,
        heat_capacity=table.heat_capacity,
        boundaries=(*table.boundary, *_adiabatic(case, table)),
        bodies=tuple(_on_body(body, table.label) for body in case.bodies),
        initial=InitialFields(
            rho=table.initial.value,
            u=still,
            file=None,
            non_equilibrium=False,
            iterate=0,
            periodic=case.domain.periodic,
            staggered=False,
            max_speed=1.0,
            density=False,
            where=f"{key}.initial",
            path=case.path,
        ),
    )


def _adiabatic(case: Case, table: ScalarTable) -> Iterator[ScalarBoundary]:
    """A condition on the faces that no entry names."""
    named = {face for boundary in table.boundary for face in boundary.where}
    axes = zip("xyz", case.domain.periodic, strict=False)
    faces = [axis + side for axis, periodic in axes if not periodic for side in "-+"]
    if rest := [face for face in faces if face not in named]:
        yield make("scalar_boundaries", {"name": "flux", "where": tuple(rest)})


def _on_body(body: Any, label: str) -> ScalarBoundary:
    """The condition on a body; at its surface if the boundary of the body is there."""
    found = body.scalar.get(label) or make("scalar_boundaries", "flux")
    return found.of_body(body.boundary.capabilities.uses_distance)

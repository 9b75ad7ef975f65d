"""The scalars of a case, from the tables of its file."""

from collections.abc import Iterator
from typing import Any

from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.model import Case
from mpilbm.case.scalars.model import Scalar
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.scalars import USUAL, ScalarTable
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import names_in
from mpilbm.core.registry import make
from mpilbm.physics.scalars.boundaries import ScalarBoundary

MOST = 1e300  # a diffusivity that the checks refuse, in place of an infinite one
INSTEAD = 0.01


def scalars_of(file: CaseFile, case: Case) -> dict[str, Any]:
    """The fields `scalars` and `buoyancy` of a case."""
    (fluid, *others) = case.fluids
    if fluid.formula:
        values = {table.label: table.initial.value for table in file.scalar}
        nu = viscosity_at_centre(case, fluid.formula, values)
        nu = nu if nu is not None and 0 < nu < MOST else INSTEAD  # others: reported by the checks
        fluid = fluid.model_copy(update={"viscosity": nu})
        case = case.model_copy(update={"fluids": (fluid, *others)})
    scalars = tuple(_scalar(case, table) for table in file.scalar)
    return {"scalars": scalars, "buoyancy": file.buoyancy, "fluids": case.fluids}


def viscosity_at_centre(case: Case, formula: str, initial: dict[str, Any]) -> float | None:
    """The viscosity at the centre of the box at t = 0, from the `initial` values of the scalars.

    None if a formula is wrong, or if a scalar starts with the values of a file.
    """
    box = {f"n{axis}": n for axis, n in zip("xyz", case.domain.size, strict=False)}
    place = {axis: n / 2 for axis, n in zip("xyz", case.domain.size, strict=False)}
    known: dict[str, Any] = {**box, **place, "t": 0.0}
    names = names_in(case.dimensions)
    try:
        for label, value in initial.items():
            text = value if isinstance(value, str) else repr(value)
            known[label] = float(Formula(text, names).evaluate(**known))
        return float(Formula(formula, (*names, *initial)).evaluate(**known))
    except FormulaError:
        return None


def _scalar(case: Case, table: ScalarTable) -> Scalar:
    nu, key = case.fluids[0].viscosity, f"scalar.{table.label}"
    ratio = table.prandtl or table.schmidt
    usual = USUAL.get(case.dimensions, "D3Q7")
    still = (0.0,) * case.dimensions
    return Scalar(
        label=table.label,
        key=key,
        diffusivity=min(nu / ratio, MOST) if ratio else table.diffusivity,
        ratio="prandtl" if table.prandtl else "schmidt" if table.schmidt else "",
        lattice=table.lattice or make("scalar_lattices", usual),
        collision=table.collision,
        source=table.source,
        heat_capacity=table.heat_capacity,
        boundaries=(*table.boundary, *_adiabatic(case, table)),
        bodies=tuple(_on_body(body, table.label) for body in case.bodies),
        initial=InitialFields(
            value=table.initial.value,
            name="value",
            u=still,
            file=None,
            non_equilibrium=False,
            iterate=0,
            periodic=case.domain.periodic,
            staggered=False,
            max_speed=1.0,
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

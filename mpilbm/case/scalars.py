"""The scalars of a case: read from the tables of its file, and their problems."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.model import Case, Scalar
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.case.tables.scalars import USUAL, ScalarTable, lattices
from mpilbm.core.files import is_number
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import FieldValue, names_in
from mpilbm.core.printable import shown
from mpilbm.core.quantity import VISCOSITY
from mpilbm.core.registry import find, make, names
from mpilbm.core.units import counted, tau_from_viscosity
from mpilbm.layouts.formats import LARGEST_HALF
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.scalars.boundaries.conjugate import Conducting, Conjugate

MOST_CONDUCTORS = 255  # bodies that conduct; the number of a material is one byte
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
    lattice = table.lattice or make("scalar_lattices", usual)
    still = (0.0,) * case.dimensions
    given = (
        (b, b.scalar.get(table.label) or make("scalar_boundaries", "flux")) for b in case.bodies
    )
    bodies = (each.of_body(b.boundary.capabilities.uses_distance) for b, each in given)
    return Scalar(
        label=table.label,
        key=key,
        diffusivity=min(nu / ratio, MOST) if ratio else table.diffusivity,
        ratio="prandtl" if table.prandtl else "schmidt" if table.schmidt else "",
        lattice=lattice,
        collision=table.collision,
        source=table.source,
        heat_capacity=table.heat_capacity,
        boundaries=(*table.boundary, *_adiabatic(case, table)),
        bodies=tuple(bodies),
        initial=InitialFields(
            value=table.initial.value,
            name="value",
            u=still,
            file=None,
            non_equilibrium=False,
            iterate=0,
            periodic=case.domain.periodic,
            lattice=lattice,
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


def scalar_problems(case: Case) -> list[str]:
    """The problems of all scalars, of the buoyancy, and of conditions on bodies."""
    found = [*_viscosity(case), *_ratios(case), *_names(case), *_of_case(case)]
    for scalar in case.scalars:
        found += [*_lattice(case, scalar), *_formulas(case, scalar), *_rates(case, scalar)]
        found += [*_materials(case, scalar), *_faces(case, scalar), *_closed(case, scalar)]
        found += _range(case, scalar)
    return found + ([*_buoyancy(case)] if case.buoyancy else [])


def _viscosity(case: Case) -> Iterator[str]:
    """A formula of the viscosity that is wrong, or that the collision cannot use."""
    for fluid in (each for each in case.fluids if each.formula):
        key, collision = case.fluid_key(fluid, "viscosity"), fluid.collision
        if not case.scalars:
            found, fix = shown(fluid.formula), _fix(case, fluid.formula)
            yield f"{key}: found {found}; allowed: a number{fix}"
        elif collision.closure or not collision.shear_rate:
            usable = [n for n in names("collisions") if find("collisions", n).shear_rate]
            yield (
                f"{key}: found a formula; allowed with the collisions {', '.join(usable)}, "
                "without closure"
            )
        try:
            Formula(fluid.formula, (*names_in(case.dimensions), *case.labels))
        except FormulaError as error:
            yield f"{key}: {error}"
        values = {scalar.label: scalar.initial.value for scalar in case.scalars}
        nu = viscosity_at_centre(case, fluid.formula, values)
        if case.scalars and nu is not None and not 0 < nu < MOST:
            yield (
                f"{key}: is {nu:g} at the centre of the box at t = 0; allowed: > 0; change "
                "the formula"
            )


def _ratios(case: Case) -> Iterator[str]:
    """Diffusivities that follow from a viscosity which depends on values of a file."""
    files = [each.label for each in case.scalars if isinstance(each.initial.value, FieldValue)]
    if case.fluids[0].formula and files:
        for scalar in (each for each in case.scalars if each.ratio):
            yield (
                f"{scalar.key}.{scalar.ratio}: needs the viscosity at the centre of the box at "
                f"t = 0, which depends on {files[0]} from a file; give diffusivity"
            )


def _fix(case: Case, text: str) -> str:
    """The end of a sentence on a text in place of a viscosity, without scalars."""
    if not is_number(text):
        return "; or, with [[scalar]], a formula of scalars"
    unit = f' to give it in {VISCOSITY.unit}, or add its unit, such as "{VISCOSITY.examples[0]}"'
    return f"; remove the quotes{unit if case.units else ''}"


def _names(case: Case) -> Iterator[str]:
    for label, count in Counter(case.labels).items():
        if count > 1:
            yield f"scalar: found the label '{label}' twice; give each scalar its own label"
    for body in case.bodies:
        yield from _unknown(case, f"body.{body.label}.scalar", body.scalar)


def _unknown(case: Case, key: str, labels: Iterable[str]) -> Iterator[str]:
    known = ", ".join(case.labels) or "none; add [[scalar]]"
    for label in labels:
        if label not in case.labels:
            yield f"{key}.{label}: there is no scalar '{label}'; scalars of the case: {known}"


def _of_case(case: Case) -> Iterator[str]:
    """Fluids and lattices that cannot carry scalars."""
    if not case.scalars:
        return
    if not case.single_fluid:
        yield "scalar: found together with coupled fluids; allowed: with one fluid; remove either"
    if case.lattice.staggered:
        every = (n for n in names("lattices") if not find("lattices", n).staggered)
        yield (
            f"scalar: is not defined on {case.lattice.name}, which stores every other node; "
            f"allowed lattices: {', '.join(every)}"
        )
    for fluid in case.fluids:
        if fluid.initial.iterate:
            yield f"{fluid.initial.where}.iterate: is not defined with scalars; remove it"


def _lattice(case: Case, scalar: Scalar) -> Iterator[str]:
    if case.dimensions != scalar.lattice.D:
        allowed = ", ".join(lattices(case.dimensions))
        yield (
            f"{scalar.key}.lattice: found {scalar.lattice.name} in {case.dimensions}D; allowed: "
            f"{allowed}"
        )


def _formulas(case: Case, scalar: Scalar) -> Iterator[str]:
    initial, D = scalar.initial.value, case.dimensions
    for key, value, known in (
        ("initial.value", initial, ()),
        ("source", scalar.source, case.labels),
    ):
        try:
            if isinstance(value, str):
                Formula(value, (*names_in(D), *known))
        except FormulaError as error:
            yield f"{scalar.key}.{key}: {error}"


def _rates(case: Case, scalar: Scalar) -> Iterator[str]:
    given = [(f"{scalar.key}.diffusivity", scalar.diffusivity, 1.0)]
    for where, solid in _conducting(case, scalar):
        given.append((f"{where}.diffusivity", solid.diffusivity, solid.capacity))
    compute = np.dtype(case.precision.compute).type
    for key, diffusivity, capacity in given:
        if tau_from_viscosity(diffusivity * capacity, scalar.lattice.cs2) <= 0.5:
            yield (
                f"{key}: found {diffusivity:g}, tau = diffusivity * capacity / cs2 + 1/2 is "
                "1/2; allowed: tau > 1/2; raise the diffusivity"
            )
            continue
        for name, rate in scalar.collision.rates(diffusivity * capacity, scalar.lattice).items():
            if not 0 < float(compute(rate)) < 2:
                yield (
                    f"{key}: found {diffusivity:g}; {name} is {float(compute(rate)):g} in "
                    f"{case.precision.compute}; allowed: between 0 and 2; change the "
                    "diffusivity"
                )


def _conducting(case: Case, scalar: Scalar) -> Iterator[tuple[str, Conducting]]:
    for body, found in zip(case.bodies, scalar.bodies, strict=True):
        if isinstance(found, Conjugate):
            yield f"body.{body.label}.scalar.{scalar.label}.conjugate", found.conjugate


def _materials(case: Case, scalar: Scalar) -> Iterator[str]:
    """Capacities for which a population would be negative, and too many materials."""
    least = float(1 - scalar.lattice.w[0])
    for where, solid in _conducting(case, scalar):
        if solid.capacity < least:
            yield (
                f"{where}.capacity: found {solid.capacity:g}; allowed: {least:.3g} or more with "
                f"{scalar.lattice.name}, below which the scheme is unstable; multiply it and "
                "divide diffusivity by one factor: this changes transients only"
            )
        if case.precision.storage == "float16":
            yield (
                f'{where}: is not defined with precision.storage = "float16", which rounds '
                'the heat of a body to 3 digits; set it to "float32"'
            )
    if len(case.conductors) > MOST_CONDUCTORS:
        yield (
            f"body: found {len(case.conductors)} bodies with 'conjugate'; allowed: "
            f"{MOST_CONDUCTORS}; join bodies of one material"
        )


def given_values(scalar: Scalar) -> list[float]:
    """The numbers that a case gives for a scalar: initial, on faces and on bodies."""
    held = [each.values() for each in (*scalar.boundaries, *scalar.bodies) if each.name == "value"]
    given = [scalar.initial.value, *(values["value"] for values in held)]
    return [float(value) for value in given if isinstance(value, int | float)]


def _range(case: Case, scalar: Scalar) -> Iterator[str]:
    """Values whose populations are infinite in 16 bits."""
    if case.precision.storage != "float16":
        return
    limit = LARGEST_HALF / float(max(scalar.lattice.w))
    largest = max(given_values(scalar), key=abs, default=0.0)
    if abs(largest) > limit:
        yield (
            f"{scalar.key}: found the value {largest:g}; allowed with precision.storage = "
            f'"float16" on {scalar.lattice.name}: up to {limit:.3g}, beyond which populations '
            "are infinite in 16 bits; give differences from a constant value in a larger unit, "
            'or set precision.storage = "float32"'
        )


def _faces(case: Case, scalar: Scalar) -> Iterator[str]:
    """Entries of `boundary` with unknown, periodic, repeated or no faces."""
    axes = dict(zip("xyz", case.domain.periodic, strict=False))
    faces = [axis + side for axis in axes for side in "-+"]
    named: dict[str, str] = {}
    for k, boundary in enumerate(scalar.boundaries):
        here = f"{scalar.key}.boundary.{k}.where"
        if boundary.conducts:
            yield (
                f"{scalar.key}.boundary.{k}: '{boundary.name}' is for bodies; give it in "
                f"body.scalar.{scalar.label}"
            )
        if not boundary.where:
            yield f"{here}: names no face; allowed: {', '.join(faces)}; list the faces"
        for face in boundary.where:
            if face not in faces:
                yield f"{here}: found '{face}' in {case.dimensions}D; allowed: {', '.join(faces)}"
            elif axes[face[0]]:
                yield (
                    f"{here}: face '{face}' is periodic; remove it here or set domain.periodic."
                    f"{'xyz'.index(face[0])} = false"
                )
            elif face in named:
                yield f"{here}: face '{face}' is named by {named[face]} already; remove one of them"
            named.setdefault(face, here)


def _closed(case: Case, scalar: Scalar) -> Iterator[str]:
    """Faces through which fluid flows and the scalar cannot, so that it would pile up there."""
    open_ = {face for each in case.boundaries if each.face_flow.crosses for face in each.where}
    for boundary in scalar.boundaries:
        for face in (each for each in boundary.where if boundary.reflects and each in open_):
            yield (
                f"{scalar.key}.boundary: fluid passes the face '{face}', which is closed for "
                f"'{scalar.label}' (adiabatic, also where nothing is given); add {{name = "
                f'"value", where = ["{face}"], value = 1.0}} at an inlet, {{name = "outflow", '
                f'where = ["{face}"]}} at an outlet'
            )


def _buoyancy(case: Case) -> Iterator[str]:
    """Labels without a scalar, a wrong number of components, a force scheme outside."""
    assert case.buoyancy is not None
    given, acting = case.buoyancy.gravity, case.buoyancy.expansions
    if len(given) != case.dimensions:
        yield (
            f"buoyancy.gravity: found {counted(len(given), 'component')}; allowed: "
            f"{case.dimensions}"
        )
    if not acting:
        yield "buoyancy: names no scalar; add T = {beta = 1.0, reference = 0.5}"
    yield from _unknown(case, "buoyancy", acting)

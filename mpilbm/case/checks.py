"""Checks of a whole case: dimensions, formulas, speeds, labels. Each returns problems."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from math import hypot, sqrt
from typing import Any

import numpy as np

from mpilbm.case.model import Case, Fluid
from mpilbm.case.motions import motion_problems, surface_speeds
from mpilbm.case.random_flow import RandomFlow
from mpilbm.case.scalars import scalar_problems
from mpilbm.case.tables.case_file import VELOCITY, Body
from mpilbm.case.velocity_bounds import fastest, wrong_values
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import names_in
from mpilbm.core.registry import find, make, names
from mpilbm.core.units import counted, tau_from_viscosity
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY


def check(case: Case, tables: dict) -> list[str]:
    """The problems of a typed case and of the tables of its file."""
    problems = [*_fluids(case, tables), *_labels(case), *_outputs(case), *_steady(case, tables)]
    if case.dimensions != case.lattice.D:
        axes = ", ".join("xyz"[: case.lattice.D])
        problems.append(
            f"domain.size: found {case.dimensions} entries, but {case.lattice.name} has "
            f"{case.lattice.D} dimensions; give {case.lattice.D} ({axes}) or another lattice"
        )
    else:
        problems += [*_walls(case), *_initial(case), *scalar_problems(case)]
        problems += [sentence for sentence, _ in from_objects(case, "problems")]
        problems += motion_problems(case)
    if not problems:
        problems += _rates(case)
        for key, boundary, shape in case.conditions():
            problems += [f"{key}.{found}" for found in wrong_values(case, boundary, shape)]
    cs = sqrt(case.lattice.cs2)
    for key, speed, when in given_speeds(case, formulas=not problems):
        if speed > cs:
            problems.append(
                f"{key}: found the speed {speed:.4g}{when}; allowed: below the speed of sound, "
                f"{cs:.4g}; lower it, and the viscosity with it to keep the Reynolds number"
            )
    return problems


def problems_with(case: Case, **objects: Any) -> list[str]:
    """The problems that the case would have with other objects in fields of Case, such as layout.

    Everything that chooses or recommends an object for a case asks this function, so that a case
    file that names the choice is accepted. The layout is by default that of the file, also if a run
    has replaced "auto" by another one.
    """
    tables = tomllib.loads(case.toml)
    given = {"layout": make("layouts", tables.get("layout", "auto"))}
    return check(case.model_copy(update=given | objects), tables)


def _fluids(case: Case, tables: dict) -> Iterator[str]:
    """Top-level tables of a fluid together with [[fluid]], missing coupling, tau <= 1/2."""
    for key in ("collision", "force", "initial") if isinstance(tables.get("fluid"), list) else ():
        if key in tables:
            wanted = "allowed: one in each [[fluid]]; move it there"
            yield f"{key}: found together with [[fluid]]; {wanted}"
    if len(case.fluids) > 1 and case.coupling is None:
        found = f"missing; {len(case.fluids)} fluids require one"
        yield f"coupling: {found}; add [coupling] or keep one fluid"
    for fluid in case.fluids:
        if tau_from_viscosity(fluid.viscosity, case.lattice.cs2) <= 0.5:
            key = case.fluid_key(fluid, "viscosity")
            found = f"{fluid.viscosity:g}, tau = viscosity/cs2 + 1/2 is 1/2"
            yield f"{key}: found {found}; allowed: tau > 1/2; raise the viscosity"


def _rates(case: Case) -> Iterator[str]:
    """Relaxation rates that are not between 0 and 2 after rounding to the precision of kernels."""
    compute = case.precision.compute
    for fluid in case.fluids:
        for name, rate in fluid.collision.rates(fluid.viscosity, case.lattice).items():
            rounded = float(np.dtype(compute).type(rate))
            if not 0 < rounded < 2:
                yield (
                    f"{case.key(fluid, 'collision')}: {name} is {rounded:g} in {compute} with the "
                    f"viscosity {fluid.viscosity:g}; allowed: between 0 and 2; change the "
                    f"viscosity or the parameters of {fluid.collision.name}"
                )


def _labels(case: Case) -> Iterator[str]:
    kinds: dict[str, tuple[Fluid | Body, ...]] = {"fluid": case.fluids, "body": case.bodies}
    for kind, entries in kinds.items():
        for label, count in Counter(entry.label for entry in entries).items():
            if count > 1:
                yield f"{kind}: found the label '{label}' twice; give each {kind} its own label"


def _outputs(case: Case) -> Iterator[str]:
    """Outputs that would write the same files."""
    for name, count in Counter(each.name for each in case.outputs if not each.several).items():
        if count > 1:
            yield (
                f"output: found '{name}' {count} times; allowed: once, because all would write the "
                "same files; keep one"
            )


def _steady(case: Case, tables: dict) -> Iterator[str]:
    """`run.steady.of` names no output of the case, or one that offers no number."""
    of = case.run.steady.of if case.run.steady else VELOCITY
    if of == VELOCITY and case.run.steady and case.run.steady.by == "error":
        yield (
            'run.steady.by: "error" is that of the mean of a number; found of = "velocity"; set '
            'run.steady.of to an [[output]] that offers a number, such as "body_forces"'
        )
    named = [output for output in case.outputs if output.name == of]
    if of == VELOCITY or any(output.watchable for output in named):
        return
    given = tables.get("output", ())
    if not isinstance(given, list | tuple):
        return  # reported as a wrong type
    if not named and any(isinstance(table, dict) and table.get("name") == of for table in given):
        return  # an output with problems, which are reported
    kinds = (find("outputs", name) for name in names("outputs"))
    numbers = [kind.model_fields["name"].default for kind in kinds if kind.watchable]
    add = f'; add [[output]] name = "{of}"' if of in numbers else ""
    yield (
        f"run.steady.of: found '{of}'; allowed: {VELOCITY}, or an [[output]] of this case that "
        f"offers a number: {', '.join(numbers)}{add}"
    )


def _walls(case: Case) -> Iterator[str]:
    """Entries of [[boundary]] with unknown, repeated or no faces."""
    faces = [f"{axis}{side}" for axis in "xyz"[: case.dimensions] for side in "-+"]
    allowed = f"allowed: {', '.join(faces)}"
    for index, boundary in enumerate(case.boundaries):
        key = f"boundary.{index}.where"
        if not boundary.where:
            yield f"{key}: missing; name its faces; {allowed}"
        for face, count in Counter(boundary.where).items():
            if face not in faces:
                yield f"{key}: found '{face}' in {case.dimensions}D; {allowed}"
            elif count > 1:
                yield f"{key}: found '{face}' twice; remove one"


def _initial(case: Case) -> Iterator[str]:
    """Initial fields: number of components, formulas, density, settings that are not defined."""
    for fluid in case.fluids:
        initial, key = fluid.initial, fluid.initial.where
        if initial.non_equilibrium and case.lattice.isotropy < 4:
            yield (
                f"{key}.non_equilibrium: is not defined on {case.lattice.name}; allowed: lattices "
                "that are isotropic to order 4; use iterate"
            )
        if initial.random:
            yield from _random(case, key, initial.random)
        if len(initial.u) != case.dimensions:
            axes = ", ".join("xyz"[: case.dimensions])
            yield (
                f"{key}.u: found {counted(len(initial.u), 'entry')}; allowed: {case.dimensions} "
                f"({axes}) in {case.dimensions}D"
            )
        rho = initial.value
        if isinstance(rho, int | float) and not LEAST_DENSITY <= rho <= LARGEST_DENSITY:
            yield f"{key}.rho: found {rho:g}; allowed: {DENSITIES}; 1 is usual"
        components = {f"u.{axis}": u for axis, u in enumerate(initial.u)}
        for name, value in ({"rho": rho} | components).items():
            try:
                if isinstance(value, str):
                    Formula(value, names_in(case.dimensions))
            except FormulaError as error:
                yield f"{key}.{name}: {error}"


def _random(case: Case, key: str, flow: RandomFlow) -> Iterator[str]:
    """A random flow in a box with walls, with waves shorter than two cells, or too fast."""
    if not all(case.domain.periodic):
        found = str(list(case.domain.periodic)).lower()
        yield (
            f"{key}.random: found domain.periodic = {found}; allowed: boxes that are periodic in "
            "all directions; use formulas for u"
        )
    longest = max(case.domain.size)
    if 6 * flow.peak >= longest:
        yield (
            f"{key}.random.peak: found {flow.peak:g}; allowed: below {longest / 6:.4g}, a sixth of "
            "the longest side; lower it, or use more cells"
        )
    cs = sqrt(case.lattice.cs2)
    if flow.speed > cs:  # the rms; cells that are faster are found when the flow is computed
        yield (
            f"{key}.random.speed: found {flow.speed:g}; allowed: below the speed of sound, "
            f"{cs:.4g}; lower it, 0.05 is usual"
        )


def from_objects(case: Case, method: str) -> list[tuple[str, Any]]:
    """(sentence with key path, item) for each item of `method(case)` of all registered objects.

    An item is a sentence or a finding. Its text may begin with a key of the object.
    """
    found = []
    for where, thing in case.objects():
        for item in getattr(thing, method)(case) if hasattr(thing, method) else ():
            begins = re.match(r"\w+", str(item))
            is_key = begins and begins[0] in type(thing).model_fields
            found.append((f"{where}{'.' if is_key else ': '}{item}", item))
    return found


def given_speeds(case: Case, formulas: bool = True) -> Iterator[tuple[str, float, str]]:
    """(key path, |u|, text with the time at which it is reached) of each velocity in the case.

    Formulas are evaluated if `formulas` is set; otherwise they count as 0.
    """
    for fluid in case.fluids:
        if fluid.velocity is not None:
            yield case.fluid_key(fluid, "velocity"), fluid.velocity, ""
        yield f"{fluid.initial.where}.u", norm(fluid.initial.u), ""
    for key, boundary, shape in case.conditions():
        numbers = norm(getattr(boundary, "velocity", None) or ()), ""
        yield f"{key}.velocity", *(fastest(case, boundary, shape) if formulas else numbers)
    if formulas:
        yield from surface_speeds(case)


def norm(vector: Iterable) -> float:
    """|vector|; components given by formulas count as 0."""
    return hypot(*(value for value in vector if isinstance(value, int | float)))

"""What must fit together in a case: dimensions, formulas, speeds, labels."""

import re
from collections import Counter
from math import hypot, pi, sqrt

import numpy as np

from mpilbm.cell_values import names_in
from mpilbm.expressions import Formula, FormulaError
from mpilbm.initial import DENSITIES, LEAST_RHO, MOST_RHO
from mpilbm.speeds import fastest, gained, leaving, wrong_values
from mpilbm.units import counted, tau_from_viscosity

LOST = 2**12  # a change of less than one part in so many leaves a number of 11 bits as it is
USUAL_SPEED = 0.05  # where a case names none


def check(case, tables: dict) -> tuple[list[str], list[str]]:
    """Problems and warnings of a typed case and of the tables of its file."""
    problems, warnings = _fluids(case, tables) + _labels(case) + _outputs(case), []
    if case.dimensions != case.lattice.D:
        axes = ", ".join("xyz"[: case.lattice.D])
        problems.append(
            f"domain.size: found {case.dimensions} entries, but {case.lattice.name} has "
            f"{case.lattice.D} dimensions; give {case.lattice.D} ({axes}) or another lattice"
        )
    else:
        problems += _walls(case) + _initial(case) + _objects(case)
    if not problems:
        problems += _rates(case)
        for key, boundary, shape in _owners(case):
            problems += [f"{key}.{found}" for found in wrong_values(case, boundary, shape)]
    for key, speed, when in _speeds(case, formulas=not problems):
        sentence = _speed(speed, sqrt(case.lattice.cs2), when)
        if sentence and speed > sqrt(case.lattice.cs2):
            problems.append(f"{key}: {sentence}")
        elif sentence:
            warnings.append(f"{key}: {sentence}")
    if case.precision.intrinsics and case.backend.name == "cpu":
        warnings.append("precision.intrinsics: has no effect on a CPU; remove it")
    if not problems:
        warnings += _objects(case, "warnings")
        warnings += _mass(case) + _leaving(case) + _sixteen_bits(case)
    return problems, warnings


def _fluids(case, tables) -> list[str]:
    """Tables of one fluid beside [[fluid]], several fluids without a coupling, tau <= 1/2."""
    problems = [
        f"{key}: stands beside [[fluid]], where each fluid has its own; move it into [[fluid]]"
        for key in ("collision", "force", "initial")
        if key in tables and isinstance(tables["fluid"], list)
    ]
    if len(case.fluids) > 1 and case.coupling is None:
        problems.append(
            f"coupling: missing; {len(case.fluids)} fluids but no coupling is given; "
            "add [coupling] or keep one fluid"
        )
    for fluid in case.fluids:
        if tau_from_viscosity(fluid.viscosity, case.lattice.cs2) <= 0.5:
            key = case.key(fluid, "viscosity") if fluid.label else "fluid.viscosity"
            problems.append(
                f"{key}: found {fluid.viscosity:g}, tau = viscosity/cs2 + 1/2 is 1/2; "
                "allowed: tau > 1/2; raise the viscosity"
            )
    return problems


def _rates(case) -> list[str]:
    """Relaxation rates that kernels would hold as 0, 2 or beyond, in their own precision."""
    compute, problems = case.precision.compute, []
    for fluid in case.fluids:
        for name, rate in fluid.collision.rates(fluid.viscosity, case.lattice).items():
            held = float(np.dtype(compute).type(rate))
            if not 0 < held < 2:
                problems.append(
                    f"{case.key(fluid, 'collision')}: {name} is {held:g} in {compute} with the "
                    f"viscosity {fluid.viscosity:g}; allowed: between 0 and 2; change the "
                    f"viscosity or the parameters of {fluid.collision.name}"
                )
    return problems


def _labels(case) -> list[str]:
    """Labels that two fluids or two bodies share."""
    kinds = {"fluid": case.fluids, "body": case.bodies}
    return [
        f"{kind}: the label '{label}' stands twice; give each its own"
        for kind, entries in kinds.items()
        for label, count in Counter(entry.label for entry in entries).items()
        if count > 1
    ]


def _outputs(case) -> list[str]:
    """Outputs that would write the same files."""
    return [
        f"output: '{name}' stands {count} times, and each would write the same files; keep one"
        for name, count in Counter(each.name for each in case.outputs if not each.several).items()
        if count > 1
    ]


def _walls(case) -> list[str]:
    """Faces that are not there, stand twice in one entry, or are missing."""
    problems = []
    for index, boundary in enumerate(case.boundaries):
        faces = [f"{axis}{side}" for axis in "xyz"[: case.dimensions] for side in "-+"]
        key = f"boundary.{index}.where"
        if not boundary.where:
            problems.append(f"{key}: missing; name its faces, some of {', '.join(faces)}")
        for face, count in Counter(boundary.where).items():
            if face not in faces:
                found = f"found '{face}' in {case.dimensions}D"
                problems.append(f"{key}: {found}; allowed: {', '.join(faces)}")
            elif count > 1:
                problems.append(f"{key}: '{face}' stands twice; remove one")
    return problems


def _initial(case) -> list[str]:
    """Wrong number of components, formulas that cannot be read, a density that is none."""
    problems = []
    for fluid in case.fluids:
        initial, key = fluid.initial, fluid.initial.where
        if initial.non_equilibrium and case.lattice.isotropy < 4:
            problems.append(
                f"{key}.non_equilibrium: is not defined on {case.lattice.name}, whose stress needs "
                "more than weights; allowed: lattices isotropic to order 4; use iterate"
            )
        if initial.iterate and not case.layout.populations and (case.boundaries or case.bodies):
            problems.append(
                f"{key}.iterate: found {initial.iterate}; the layout '{case.layout.name}' cannot "
                "hold the velocity at walls; choose the layout 'ab' or 'esopull'"
            )
        if len(initial.u) != case.dimensions:
            axes = ", ".join("xyz"[: case.dimensions])
            problems.append(
                f"{key}.u: found {counted(len(initial.u), 'entry')}; allowed: {case.dimensions} "
                f"({axes}) in {case.dimensions}D"
            )
        if not isinstance(initial.rho, str) and not LEAST_RHO <= initial.rho <= MOST_RHO:
            problems.append(f"{key}.rho: found {initial.rho:g}; allowed: {DENSITIES}; 1 is usual")
        values = {"rho": initial.rho} | {f"u.{axis}": u for axis, u in enumerate(initial.u)}
        for name, value in values.items():
            try:
                if isinstance(value, str):
                    Formula(value, names_in(case.dimensions))
            except FormulaError as error:
                problems.append(f"{key}.{name}: {error}")
    return problems


def _objects(case, what: str = "problems") -> list[str]:
    """What the registered objects themselves find: their `what(case)`, with key paths."""
    problems = []
    for where, thing in case.objects():
        for problem in getattr(thing, what)(case) if hasattr(thing, what) else ():
            begins = re.match(r"\w+", problem)
            is_key = begins and begins[0] in type(thing).model_fields
            problems.append(f"{where}{'.' if is_key else ': '}{problem}")
    return problems


def _speeds(case, formulas: bool = True):
    """(key path, |u|, when it is reached) of every velocity; `formulas`: all of these are right."""
    for fluid in case.fluids:
        if fluid.velocity is not None:
            key = case.key(fluid, "velocity") if fluid.label else "fluid.velocity"
            yield key, fluid.velocity, ""
        yield f"{fluid.initial.where}.u", _norm(fluid.initial.u), ""
    for key, boundary, shape in _owners(case):
        numbers = _norm(getattr(boundary, "velocity", None) or ()), ""
        yield f"{key}.velocity", *(fastest(case, boundary, shape) if formulas else numbers)


def _owners(case):
    """(key path, boundary, shape) of all boundaries; the shape of bodies that have one."""
    for index, boundary in enumerate(case.boundaries):
        yield f"boundary.{index}", boundary, None
    for body in case.bodies:
        yield f"body.{body.label}.boundary", body.boundary, body.shape


def _norm(vector) -> float:
    """|vector|; components that are formulas count as 0."""
    return hypot(*(value for value in vector if isinstance(value, int | float)))


def _mass(case) -> list[str]:
    """Velocities on all faces that fill or empty the box; outflows that let the mass grow."""
    held = any(getattr(boundary, "rho", None) is not None for boundary in case.boundaries)
    drifting = [b.name for b in case.boundaries if getattr(b, "drifts", False)]
    if drifting and not held:
        return [
            f"boundary: no face holds the density, and with '{drifting[0]}' the mass may grow "
            "without bound: give it rho, or take characteristic"
        ]
    net, gross, t = gained(case)
    if abs(net) <= 1e-6 * gross:
        return []
    return [
        f"boundary: the velocities of the faces bring in {net:.4g} cells a step at t = {t}, and no "
        "face lets them out: the mass drifts; give rho, or an outflow, at one of them"
    ]


def _leaving(case) -> list[str]:
    """Walls through which a flow leaves faster than their cells can slow it down.

    Such a wall asks for no velocity along itself, as one at rest does. The odd-even wave along it
    grows from u_n = 2 sqrt(3) nu on, a little earlier below nu = 0.002; on D3Q13 from 2 nu. What
    sets whole cells is not asked, as tamm_mott_smith bears some 7 nu.
    [Linear analysis of bgk, trt and regularized on D2Q9; runs of trt on D3Q19, mrt on D3Q13]
    """
    nu, found = min(fluid.viscosity for fluid in case.fluids), []
    limit = (2 if case.lattice.staggered else 2.9) * nu
    for k, boundary in enumerate(case.boundaries):
        asked = boundary.wall_at == "half" and not boundary.whole
        for face in boundary.where if asked and getattr(boundary, "velocity", None) else ():
            out, when = leaving(case, boundary, face)
            if out > limit:
                found.append(
                    f"boundary.{k}.velocity: the flow leaves through {face} at {out:.3g}{when}; "
                    f"above {limit:.3g} ({limit / nu:.2g} viscosities) '{boundary.name}' is "
                    "unstable there: take an outflow, or equilibrium with this velocity"
                )
    return found


def _sixteen_bits(case) -> list[str]:
    """Where changes a step are lost: below half a unit of the 11 bits that are stored."""
    if case.precision.storage != "float16":
        return []
    found = []
    speed = max((speed for _, speed, _ in _speeds(case)), default=0) or USUAL_SPEED
    length = min(case.domain.size)
    mend = 'take storage = "float32", or measure with tools/precision_table what it costs'
    for fluid in case.fluids:
        force = _norm(fluid.force.value) if fluid.force else 0
        if 0 < force < speed / LOST:
            found.append(
                f"precision.storage: 16 bits lose the force: it adds {force:.2g} a step to a speed "
                f"of {speed:.2g}, which is stored in steps of {2 * speed / LOST:.2g}; {mend}"
            )
        change = fluid.viscosity * (pi / length) ** 2
        if change < 1 / LOST:
            found.append(
                f"precision.storage: 16 bits may lose the viscosity: across {length} cells it "
                f"changes a slow flow by {change:.2g} of itself a step, less than half a unit of "
                f"what is stored, {1 / LOST:.2g}; {mend}"
            )
    return found


def _speed(speed: float, cs: float, when: str) -> str:
    """What is wrong with a speed; empty below a third of the speed of sound."""
    mend = "lower it, and the viscosity with it to keep the Reynolds number"
    if speed > cs:
        return f"found the speed {speed:.4g}{when}; allowed: below that of sound, {cs:.4g}; {mend}"
    if speed > cs / 3:
        return (
            f"the speed {speed:.4g}{when} is above a third of that of sound, {cs / 3:.4g}; "
            f"errors grow with its square: {mend}"
        )
    return ""

"""Reads a case file: TOML -> lattice units -> typed tables -> checked `Case`.

A body that reaches through a periodic face has parts at both faces. Velocities of its wall and the
torque about its centre refer to its frame, the coordinates in which its shape is given: there the
body is in one piece, within half a box of its middle. A point x of the box has the coordinate

    x + (n if x < seam else 0) + moved

along an axis of n cells; the seam lies opposite the middle of the body.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from math import floor, sqrt
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mpilbm.case.checks import check
from mpilbm.case.given_objects import plain, shown_type
from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.messages import sentences
from mpilbm.case.model import Case, Fluid
from mpilbm.case.quantities import in_lattice_units
from mpilbm.case.scalars import scalars_of
from mpilbm.case.tables import MOST_STEPS
from mpilbm.case.tables.case_file import Body, CaseFile, UnreadRun, schema
from mpilbm.case.tables.fluids import FluidTable, Viscosity
from mpilbm.case.typed_keys import override, with_present_names
from mpilbm.case.value_files import resolved
from mpilbm.core import printable
from mpilbm.core.errors import CaseError, UsageError
from mpilbm.core.files import NotATextFile, read_text
from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import AXES, names_in
from mpilbm.core.registry import as_json, plugin_errors

__all__ = ["Case", "Fluid", "load_case", "parse_case", "recorded_case", "schema"]

# tables of the file that the case has as they are
SAME = (
    "title", "lattice", "domain", "coupling", "precision", "layout", "backend", "halo", "run",
    "sponge",
)  # fmt: skip
SAME_INITIAL = ("random", "scale", "non_equilibrium", "iterate")
DEPTH = 64  # of nested tables and lists
IN_PYTHON = "case"  # the name of a case that is a dict, in messages


def load_case(
    case: str | Path | Mapping[str, Any], overrides: Sequence[str] | Mapping[str, Any] = ()
) -> Case:
    """Read a case, apply the overrides, and check everything.

    `case` is the path of a file, or a dict with the same tables, in which NumPy numbers, tuples and
    paths are allowed; files that a dict names are relative to the current folder. `overrides` are
    texts `key.path=value` as after `--set`, or a dict {"key.path": value}. Raises CaseError with
    all problems, one per line, and UsageError for arguments of another type.
    """
    _require_arguments(case, overrides)
    path = Path(IN_PYTHON) if isinstance(case, Mapping) else Path(case)
    tables = dict(case) if isinstance(case, Mapping) else _read(path)
    _refuse_depth(tables, path)
    tables, problems = override(tables, overrides)
    if problems:
        raise CaseError(problems)
    texts = () if isinstance(overrides, Mapping) else tuple(overrides)
    return parse_case(tables, path).model_copy(update={"settings": texts})


@plugin_errors()
def parse_case(tables: dict, path: str | Path = "case.toml") -> Case:
    """The case described by the tables of a file; raises CaseError with all problems.

    The tables of a Python program may contain arrays and functions, see given_objects.py.
    """
    case, tables, problems = _unread(tables, path)
    case = framed(resolved(case))
    problems += check(case, tables)
    if problems:
        raise CaseError(problems, path=path)
    return case


@plugin_errors()
def recorded_case(tables: dict, path: str | Path) -> Case:
    """The case of results, from the tables that a run has written; reads no other file.

    It was checked before the run, so that only its tables are typed: shapes, boundaries and initial
    fields keep the names of their files, arrays and functions in place of the values, and bodies
    have no frames. Raises CaseError for tables that another version has written.
    """
    case, _, problems = _unread(tables, path)
    if problems:
        raise CaseError(problems, path=path)
    return case


def _unread(tables: dict, path: str | Path) -> tuple[Case, dict, list[str]]:
    """The typed case before its files are read, its tables without objects, and their problems."""
    _refuse_depth(tables, path)
    tables, given = plain(tables, path)
    tables, twice, renamed = with_present_names(tables)
    numbers, problems, rounded = in_lattice_units(tables)
    file, wrong = _typed_tables(numbers)
    problems = [*twice, *problems, *wrong]
    if file is None:
        raise CaseError(problems, path=path)
    case = _case(file, tables, Path(path)).model_copy(
        update={"of_keys": (*renamed, *rounded), "given": given}
    )
    return case, tables, problems


def _require_arguments(case: object, overrides: object) -> None:
    if not isinstance(case, str | Path | Mapping):
        raise UsageError(
            f"load_case: found {shown_type(case)} as case; give the path of a case file, or a dict "
            "with its tables"
        )
    if isinstance(overrides, str) or not isinstance(overrides, Sequence | Mapping):
        raise UsageError(
            f"load_case: found {shown_type(overrides)} as overrides; give a dict "
            '{"run.steps": 100}, or a list of texts ["run.steps=100"]'
        )


def _read(path: Path) -> dict:
    try:
        return tomllib.loads(read_text(path, "utf-8-sig"))
    except NotATextFile as error:
        problem = f"{error}; name a case file, *.toml"
    except FileNotFoundError:
        problem = "there is no such file; `mpilbm new NAME` writes a case to start from"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; name a case file, *.toml"
    except (ValueError, RecursionError) as error:
        problem = f"is not TOML: {error}; correct that place"
    raise CaseError(problem, path=path)


def _refuse_depth(tables: dict, path: str | Path) -> None:
    """Raise CaseError for tables nested deeper than DEPTH, so that no later recursion fails."""
    inner = list(tables.items())
    for _ in range(DEPTH):
        inner = [
            (key, each)
            for key, value in inner
            if isinstance(value, Mapping | list | tuple)
            for each in (value.values() if isinstance(value, Mapping) else value)
        ]
    if inner:
        problem = f"is nested deeper than {DEPTH} tables or lists; remove the innermost"
        raise CaseError(problem, inner[0][0], path)


def _typed_tables(tables: dict) -> tuple[CaseFile | None, list[str]]:
    """The typed tables and their problems.

    Tables with problems are omitted and the others are typed, so that all problems are reported
    together. The first result is None if the remaining tables are invalid, too.
    """
    try:
        return _validated(tables), []
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors()}
        problems = sentences(error, tables)
    if "coupling" in wrong:  # all other tables depend on it
        return None, problems
    wrong |= {"layout"} if "collision" in wrong else set()  # layouts support some collisions
    wrong |= {"output"} if "body" in wrong else set()  # outputs name bodies
    wrong |= {"output", "buoyancy", "body"} if "scalar" in wrong else set()  # and these scalars
    rest = {key: value for key, value in tables.items() if key not in wrong}
    known = "run" in rest
    try:
        file = _validated(rest if known else rest | {"run": {"steps": MOST_STEPS}})
    except ValidationError:
        return None, problems
    return (file if known else file.model_copy(update={"run": UnreadRun()})), problems


def _validated(tables: dict) -> CaseFile:
    # as JSON, for which the strict mode accepts lists as tuples
    return CaseFile.model_validate_json(as_json(tables), strict=True)


def _case(file: CaseFile, tables: dict, path: Path) -> Case:
    if isinstance(file.fluid, tuple):
        several = len(file.fluid) > 1
        fluids = tuple(
            _fluid(file, path, each, each, each.label if several else "") for each in file.fluid
        )
    else:
        fluids = (_fluid(file, path, file.fluid, file, ""),)
    bodies = tuple(
        body if body.label else body.model_copy(update={"label": str(index)})
        for index, body in enumerate(file.body)
    )
    case = Case(
        **{key: getattr(file, key) for key in SAME},
        fluids=fluids,
        units=file.units and file.units.checked(),
        sound=file.units and file.units.sound,
        boundaries=file.boundary,
        bodies=bodies,
        outputs=file.output,
        path=path,
        toml=printable.dumps(tables),
    )
    return case.model_copy(update=scalars_of(file, case))


def _fluid(
    file: CaseFile, path: Path, numbers: Viscosity, tables: CaseFile | FluidTable, label: str
) -> Fluid:
    """A fluid: its viscosity from `numbers`; collision, force and initial from `tables`."""
    force, initial = tables.force, tables.initial
    return Fluid(
        label=label,
        viscosity=numbers.value(),
        formula=numbers.viscosity if isinstance(numbers.viscosity, str) else "",
        **{key: getattr(numbers, key) for key in ("reynolds", "length", "velocity")},
        collision=tables.collision,
        force=force if force is not None and any(getattr(force, "value", (1,))) else None,
        initial=InitialFields(
            **{key: getattr(initial, key) for key in SAME_INITIAL},
            value=initial.rho,
            u=initial.u or (0.0,) * len(file.domain.size),
            file=path.parent / initial.file if initial.file is not None else None,
            scale_rho=initial.scale**2 if file.coupling is None else 1.0,
            periodic=file.domain.periodic,
            lattice=file.lattice,
            max_speed=sqrt(file.lattice.cs2),
            where=f"fluid.{label}.initial" if label else "initial",
            path=path,
        ),
    )


Frame = tuple[tuple[float, float], ...]  # (seam, moved) along each axis


def framed(case: Case) -> Case:
    """The case with the frames of its bodies, and formulas of their walls in these coordinates."""
    frames = tuple(_frame(case, body) for body in case.bodies)
    bodies = tuple(map(partial(_with_formulas, case), case.bodies, frames))
    return case.model_copy(update={"bodies": bodies, "frames": frames})


def _frame(case: Case, body: Body) -> Frame:
    """The frame of a body; zeros where coordinates are those of the box."""
    shape, domain = body.shape, case.domain
    if shape is None or len(domain.size) != case.lattice.D or shape.problems(case):
        return ((0.0, 0.0),) * len(domain.size)
    sides = zip(*shape.bounds(), domain.size, domain.periodic, strict=True)
    return tuple(_seam(*side) for side in sides)


def _with_formulas(case: Case, body: Body, frame: Frame) -> Body:
    """The body with formulas of its boundary in the coordinates of the frame."""
    velocity = getattr(body.boundary, "velocity", None)
    if velocity is None or not any(map(any, frame)):
        return body
    moved = _moved(velocity, frame, case.domain.size)
    boundary = body.boundary.model_copy(update={"velocity": moved})
    return body.model_copy(update={"boundary": boundary})


def _seam(lower: float, upper: float, n: int, periodic: bool) -> tuple[float, float]:
    """(seam, moved) along an axis; zeros for a body that no link reaches through a face."""
    reaches = lower <= 0.5 or upper >= n - 0.5
    if not (periodic and reaches and upper - lower < n):
        return 0.0, 0.0
    begin = lower / 2 + upper / 2 - n / 2  # the sum of large numbers may overflow
    moved = n * floor(begin / n)
    return begin - moved, float(moved)


def _moved(value: Any, frame: Frame, size: tuple[int, ...]) -> Any:
    """A value, or a tuple of values, whose formulas use the coordinates of the frame."""
    if isinstance(value, tuple):
        return tuple(_moved(each, frame, size) for each in value)
    if not isinstance(value, str):
        return value
    try:
        Formula(value, names_in(len(size)))
    except FormulaError:
        return value  # reported by the checks of the case
    for axis, (seam, moved), n in zip(AXES, frame, size, strict=False):
        if seam or moved:
            own = f"({axis} + where({axis} < {seam!r}, {n + moved!r}, {moved!r}))"
            value = re.sub(rf"\b{axis}\b", own, value)
    return value

"""A case, typed and frozen, and the only reader of its TOML."""

import tomllib
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mpilbm.case.case_findings import of_case
from mpilbm.case.checks import check
from mpilbm.case.initial_fields import Initial
from mpilbm.case.messages import sentences
from mpilbm.case.overrides import override
from mpilbm.case.quantities import in_lattice_units, schema
from mpilbm.case.tables import UNKNOWN_STEPS, Body, CaseFile, Domain, Precision, Run
from mpilbm.case.value_files import resolved
from mpilbm.choice import as_json
from mpilbm.codegen.program import OF
from mpilbm.errors import CaseError
from mpilbm.registry import Parameters, plugin_errors
from mpilbm.system import toml_text
from mpilbm.system.input_text import NotATextFile, read_text
from mpilbm.units import Scales
from mpilbm.verdicts.findings import in_order

__all__ = ["Body", "Case", "Domain", "Fluid", "Initial", "Precision", "Run"]
__all__ += ["load_case", "parse_case", "schema"]

DEPTH = 64  # of tables and lists in each other


class Fluid(Parameters):
    """One fluid: viscosity in lattice units, collision, force (None: none or zero), initial fields.

    `label` is empty in a case of one fluid; reynolds, length and velocity are kept if the
    viscosity was given so.
    """

    label: str = ""
    viscosity: float
    reynolds: float | None = None
    length: float | None = None
    velocity: float | None = None
    collision: Any
    force: Any = None
    initial: Initial


class Case(Parameters):
    """All that a run needs. lattice, collision, … are objects of the registry's classes.

    `toml` is the case as it took effect, overrides included.
    """

    title: str = ""
    lattice: Any
    domain: Domain
    fluids: tuple[Fluid, ...]
    coupling: Any = None
    units: Scales | None = None
    precision: Precision
    layout: Any
    backend: Any
    halo: Any
    boundaries: tuple[Any, ...]
    bodies: tuple[Body, ...]
    run: Run
    outputs: tuple[Any, ...]
    path: Path
    toml: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings that need no cell of the box, the most serious first, a sentence each."""
        return tuple(map(str, in_order(of_case(self))))

    @property
    def directory(self) -> Path:
        """The folder of the file: paths in a case start there."""
        return self.path.parent

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.domain.size)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(planes, rows, nx) of stored cells: (nz, ny, nx) in 3D, (ny, 1, nx) in 2D.

        Where the lattice leaves out every other node (nz, ny, nx / 2).
        """
        nx, *rest = self.domain.size
        nx //= self.lattice.volume
        return (rest[1], rest[0], nx) if len(rest) == 2 else (rest[0], 1, nx)

    @property
    def ghost(self) -> int:
        """Planes beyond each end of a slab that it holds: as far as a cell reads."""
        boundaries = (*self.boundaries, *(body.boundary for body in self.bodies))
        return max([1, *(boundary.capabilities.planes_behind for boundary in boundaries)])

    @property
    def weighed(self) -> tuple[int, ...]:
        """Numbers of the bodies whose forces an output asks for."""
        return tuple(sorted({k for output in self.outputs for k in output.bodies(self)}))

    @property
    def split(self) -> bool:
        """Whether an output asks for the parts of these forces."""
        return any(output.splits for output in self.outputs)

    def key(self, fluid: Fluid, name: str) -> str:
        """Key path of a table of a fluid: `collision`, or `fluid.water.collision`."""
        return f"fluid.{fluid.label}.{name}" if len(self.fluids) > 1 else name

    def force_on(self, number: int) -> list:
        """The components of the force on a fluid; coupled ones have names of their own."""
        force = self.fluids[number].force
        return force.components(OF.format(number) if self.coupling else "") if force else []

    def objects(self) -> Iterator[tuple[str, Any]]:
        """Everything that the registry made for this case, with its key path."""
        found = [(name, getattr(self, name)) for name in ("lattice", "coupling", "layout")]
        found += [(name, getattr(self, name)) for name in ("backend", "halo")]
        for fluid in self.fluids:
            found.append((self.key(fluid, "collision"), fluid.collision))
            found.append((self.key(fluid, "force"), fluid.force))
        found += [(f"boundary.{index}", thing) for index, thing in enumerate(self.boundaries)]
        for body in self.bodies:
            found.append((f"body.{body.label}.shape", body.shape))
            found.append((f"body.{body.label}.boundary", body.boundary))
        found += [(f"output.{index}", thing) for index, thing in enumerate(self.outputs)]
        for where, thing in found:
            yield from _with_parts(where, thing)


def _with_parts(where: str, thing) -> Iterator[tuple[str, Any]]:
    """An object and those in its fields, like a collision's equilibrium; nothing for None."""
    if isinstance(thing, Parameters):
        yield where, thing
        for name in type(thing).model_fields:
            yield from _with_parts(f"{where}.{name}", getattr(thing, name))


def load_case(path: str | Path, overrides: Sequence[str] = ()) -> Case:
    """Read a case file, apply `key.path=value` overrides and check everything.

    Raises CaseError with all problems, a line each.
    """
    tables = _read(Path(path))
    _refuse_depth(tables, path)
    tables, problems = override(tables, overrides)
    if problems:
        raise CaseError(problems)
    return parse_case(tables, path)


@plugin_errors()
def parse_case(tables: dict, path: str | Path = "case.toml") -> Case:
    """The case that the tables of a file describe; raises CaseError with all problems."""
    _refuse_depth(tables, path)
    numbers, wrong = in_lattice_units(tables)
    file, problems = _typed_tables(numbers)
    problems = wrong + problems
    if file is None:
        raise CaseError(problems, path=path)
    case = resolved(_case(file, tables, Path(path)))
    problems += check(case, tables)
    if problems:
        raise CaseError(problems, path=path)
    return case


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


def _refuse_depth(tables: dict, path) -> None:
    """CaseError for tables and lists nested deeper than DEPTH, at which no recursion fails."""
    inner = list(tables.items())
    for _ in range(DEPTH):
        inner = [
            (key, each)
            for key, value in inner
            if isinstance(value, dict | list)
            for each in (value.values() if isinstance(value, dict) else value)
        ]
    if inner:
        problem = f"is nested deeper than {DEPTH} tables or lists; remove the innermost"
        raise CaseError(problem, inner[0][0], path)


def _typed_tables(tables: dict) -> tuple[CaseFile | None, list[str]]:
    """The typed tables and what is wrong with them.

    Where something is wrong the rest is typed without it, so that its problems are reported too;
    None if that fails.
    """
    try:
        return CaseFile.model_validate_json(as_json(tables), strict=True), []
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors()}
        problems = sentences(error, tables)
    if "coupling" in wrong:  # everything else depends on it
        return None, problems
    wrong |= {"output"} if "body" in wrong else set()  # they name bodies
    rest = {"run": {"steps": UNKNOWN_STEPS}}
    rest |= {key: value for key, value in tables.items() if key not in wrong}
    try:
        return CaseFile.model_validate_json(as_json(rest), strict=True), problems
    except ValidationError:
        return None, problems


def _case(file: CaseFile, tables: dict, path: Path) -> Case:
    """The typed case of typed tables; nothing is checked."""
    if isinstance(file.fluid, tuple):
        several = len(file.fluid) > 1
        fluids = tuple(
            _fluid(file, path, table, table, table.label if several else "") for table in file.fluid
        )
    else:
        fluids = (_fluid(file, path, file.fluid, file, ""),)
    bodies = tuple(
        body if body.label else body.model_copy(update={"label": str(index)})
        for index, body in enumerate(file.body)
    )
    same = (
        "title",
        "lattice",
        "domain",
        "coupling",
        "precision",
        "layout",
        "backend",
        "halo",
        "run",
    )
    return Case(
        **{key: getattr(file, key) for key in same},
        fluids=fluids,
        boundaries=file.boundary,
        bodies=bodies,
        outputs=file.output,
        units=file.units and file.units.scales(),
        path=path,
        toml=toml_text.dumps(tables),
    )


def _fluid(file: CaseFile, path: Path, numbers, tables, label: str) -> Fluid:
    """A fluid from its `numbers` and from the `tables` that hold collision, force and initial."""
    given = {key: getattr(numbers, key) for key in ("reynolds", "length", "velocity")}
    force, cs = tables.force, sqrt(file.lattice.cs2)
    return Fluid(
        label=label,
        viscosity=numbers.value(),
        **given,
        collision=tables.collision,
        force=force if force is not None and any(getattr(force, "value", (1,))) else None,
        initial=Initial(
            rho=tables.initial.rho,
            u=tables.initial.u or (0.0,) * len(file.domain.size),
            where=f"fluid.{label}.initial" if label else "initial",
            file=tables.initial.file and path.parent / tables.initial.file,
            non_equilibrium=tables.initial.non_equilibrium,
            iterate=tables.initial.iterate,
            periodic=file.domain.periodic,
            path=path,
            max_speed=cs,
            staggered=file.lattice.staggered,
        ),
    )

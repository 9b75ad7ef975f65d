"""What `mpilbm bench` measures: a case or the standard boxes, in all variants asked for."""

import copy
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from mpilbm.bench.boxes import MASK, PRECISIONS, RADIUS, SETTINGS, TILE, box, tiled_rock
from mpilbm.bench.measure import measure
from mpilbm.case.case import load_case, parse_case
from mpilbm.case.overrides import override
from mpilbm.errors import CaseError, CommandError, NonFiniteError
from mpilbm.parallel import slabs
from mpilbm.parallel.agree import together
from mpilbm.registry import UnknownName, find, names
from mpilbm.run.progress import say
from mpilbm.run.run import open_device
from mpilbm.solver import memory_plan

USUAL = {
    "lattice": "D3Q19",
    "collision": "trt",
    "layout": "ab",
    "precision": "single",
    "setting": "periodic,cavity,porous",
}
SIDES = {"cpu": {2: 2048, 3: 128}, "cuda": {2: 8192, 3: 512}}  # cells of the usual box
LEAST_SIDE = 32


class Variant(NamedTuple):
    """One thing to measure; None: as the case has it, the size: the usual one of the device."""

    lattice: str | None
    collision: str | None
    layout: str | None
    precision: str | None
    setting: str | None
    size: tuple[int, ...] | None


@dataclass(frozen=True)
class Series:
    """All that is to be measured: the `base` tables of a `case` file, or the standard boxes.

    Sizes are those of a rank: along the slowest axis a standard box is as many times as long as
    there are ranks; `strong`: sizes are those of the whole box. The file's box stays as it is.
    """

    variants: tuple[Variant, ...]
    case: Path | None = None
    base: dict | None = None
    overrides: Sequence[str] = ()
    backend: str | None = None
    porosity: float = 0.62
    steps: int | None = None
    repeats: int = 5
    strong: bool = False

    def rows(self, comm) -> Iterator[dict]:
        """A row for each variant, as soon as it is measured; collective."""
        for variant in self.variants:
            row = self.row(variant, comm)
            say(comm, f"{label(row)}: {row.get('problem') or '{glups:.4g} GLUPS'.format(**row)}")
            yield row

    def row(self, variant: Variant, comm) -> dict:
        """Names and figures of a variant, or its `problem`."""
        row = variant._asdict() | {"setting": variant.setting or str(self.case)}
        with TemporaryDirectory(prefix="mpilbm-") as folder:
            path = self.case or Path(folder, "box.toml")
            try:
                case = self.typed(variant, path, comm)
                row |= _names(case)
                if variant.setting == "porous":
                    together(comm, _write_rock, case, self.porosity)
                    row["rock"] = {"tile": TILE, "radius": RADIUS, "porosity": self.porosity}
                speed = measure(case, comm, self.steps, self.repeats)
            except CaseError as error:
                found = (problem.removeprefix(f"{path}: ") for problem in error.problems)
                return row | {"problem": f"not defined: {'; '.join(found)}"}
            except NonFiniteError as error:
                return row | {"problem": f"not counted: {error}"}
        figures = ("glups", "spread", "achieved", "share")
        row |= asdict(speed) | {name: getattr(speed, name) for name in figures}
        return row | {"case": case.toml}

    def tables(self, variant: Variant, size=None) -> dict:
        """The case file of a variant; `size` is that of the whole standard box."""
        if self.case:
            tables = copy.deepcopy(self.base)
            for key in ("lattice", "collision", "layout"):
                if name := getattr(variant, key):
                    tables[key] = {"name": name}
            if variant.precision:
                tables["precision"] = tables.get("precision", {}) | PRECISIONS[variant.precision]
        else:
            *physics, precision, setting, _ = variant
            tables = box(setting, size, *physics, precision)
            tables, problems = override(tables, self.overrides)
            if problems:
                raise CaseError(problems)
        return tables | ({"backend": {"name": self.backend}} if self.backend else {})

    def typed(self, variant: Variant, path: Path, comm):
        """The case of a variant; a usual box shrinks until it fits the memory."""
        if self.case:
            return parse_case(self.tables(variant), path)

        def of(size: tuple[int, ...]):
            whole = (*size[:-1], size[-1] * (1 if self.strong else comm.size))
            return parse_case(self.tables(variant, whole), path)

        return of(variant.size) if variant.size else _usual(of, variant.lattice, comm)


def _usual(of, lattice: str, comm):
    """The case `of` a size: as is usual on this device, smaller where memory is short."""
    D = find("lattices", lattice).D
    backend, device = open_device(of((LEAST_SIDE,) * D).backend, comm)
    side = usual = SIDES.get(backend.name, SIDES["cpu"])[D]
    while side > LEAST_SIDE and not _fits(of((side,) * D), device, comm):
        side = max(LEAST_SIDE, side * 3 // 4 // 32 * 32)
    if side < usual:
        say(comm, f"note: {side} cells a side, a box of {usual} does not fit the memory")
    return of((side,) * D)


def _fits(case, device, comm) -> bool:
    """Whether the arrays of each rank fit its device."""
    slab = slabs.split(case.shape, comm.size, case.domain.periodic[-1])[comm.rank]
    try:
        together(comm, memory_plan.require, device, case, slab)
    except CaseError:
        return False
    return True


def _write_rock(case, porosity: float) -> None:
    """The mask of a porous box, beside its case."""
    solid = tiled_rock(case.domain.size[::-1], porosity)
    np.save(case.directory / MASK, solid, allow_pickle=False)


def _names(case) -> dict:
    """How the case calls what a variant may leave open."""
    chosen = {"compute": case.precision.compute, "storage": case.precision.storage}
    known = (name for name, types in PRECISIONS.items() if types == chosen)
    return {
        "lattice": case.lattice.name,
        "collision": ", ".join(fluid.collision.name for fluid in case.fluids),
        "layout": case.layout.name,
        "precision": next(known, "/".join(chosen.values())),
        "size": list(case.domain.size),
    }


def label(row: dict) -> str:
    """All that a variant says of itself."""
    words = [row[key] for key in Variant._fields[:-1]]
    size = row["size"] and size_text(row["size"])
    return " ".join(word for word in (*words, size) if word)


def size_text(size) -> str:
    """128^3, or 128x64x32."""
    sides = "x".join(map(str, size))
    return f"{size[0]}^{len(size)}" if len(set(size)) == 1 < len(size) else sides


# ------------------------------------------------------------------------------ command line


def plan(case: Path | None, overrides, options: dict, usual: dict = USUAL, **more) -> Series:
    """The series of all combinations of what options list with commas.

    `options` holds the texts (or None) for the keys of `usual` and for `size`; `all` stands for
    each name that exists. Raises CommandError for other names, and for what a case file says
    itself, CaseError if the file is wrong.
    """
    for option in ("size", "setting") if case else ():
        if options[option]:
            raise CommandError(
                f"--{option}: is for the standard boxes, and {case} has its own; override that "
                "with --set, for example --set domain.size=[64,64,64]"
            )
    choices = []
    for option, names_usual in usual.items():
        text = options[option] or (None if case else names_usual)
        choices.append(_listed(option, text) if text else [None])
    sizes = options["size"]
    choices.append([_sides(text) for text in sizes.split(",")] if sizes is not None else [None])
    variants = tuple(
        Variant(*chosen, _size(chosen[0], sides)) for *chosen, sides in product(*choices)
    )
    base = tomllib.loads(load_case(case, overrides).toml) if case else None
    return Series(variants, case, base, () if case else overrides, **more)


def _listed(option: str, text: str) -> list[str]:
    """The names in a list with commas, each of which must exist."""
    own = {"precision": tuple(PRECISIONS), "setting": SETTINGS}
    kind = {"lattice": "lattices"}.get(option, f"{option}s")
    allowed = own[option] if option in own else names(kind)
    found = allowed if text == "all" else [name.strip() for name in text.split(",")]
    for name in found:
        if name not in allowed:
            raise CommandError(f"--{option} {UnknownName(kind, name, (*allowed, 'all'))}")
    return list(found)


def _sides(text: str) -> tuple[int, ...]:
    """(128,) of "128", (128, 64, 32) of "128x64x32"."""
    sides = text.strip().split("x")
    if len(sides) > 3 or not all(side.isdecimal() and int(side) for side in sides):
        raise CommandError(
            f"size of a box: found '{text}'; allowed for --size, --weak and --strong: cells along "
            "each side, 128 for a cube (in 2D a square) or 128x64x32, several with commas"
        )
    return tuple(map(int, sides))


def _size(lattice: str, sides: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """A cube, or in 2D a square, of one side."""
    return sides * find("lattices", lattice).D if sides and len(sides) == 1 else sides

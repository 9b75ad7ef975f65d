"""The measurements of `mpilbm bench`: a case or the standard boxes, in all requested variants."""

import copy
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from mpilbm.backends import Device
from mpilbm.case.case import Case, load_case, parse_case
from mpilbm.case.typed_keys import override
from mpilbm.core.errors import CaseError, CommandError, NonFiniteError
from mpilbm.core.registry import UnknownName, find, names
from mpilbm.parallel import Communicator, slabs, together
from mpilbm.run.progress import say
from mpilbm.run.setup import open_device
from mpilbm.solver import memory_plan
from mpilbm.view.bench import (
    EARLIER_PRECISIONS,
    MASK,
    PRECISIONS,
    RADIUS,
    SETTINGS,
    SINGLE,
    TILE,
    box,
    tiled_rock,
)
from mpilbm.view.bench.measure import measure

DEFAULTS = {
    "lattice": "D3Q19",
    "collision": "trt",
    "layout": "ab",
    "precision": SINGLE,
    "setting": "periodic,cavity,porous",
}
# Cells along a side of the default box, by dimensions.
SIDES = {"cpu": {2: 2048, 3: 128}, "opencl": {2: 4096, 3: 256}, "cuda": {2: 8192, 3: 512}}
LEAST_SIDE = 32


Row = dict[str, Any]  # names and figures of a variant, or its `problem`


class Variant(NamedTuple):
    """A variant to measure. None: the value of the case; as size, the default of the device."""

    lattice: str | None
    collision: str | None
    layout: str | None
    precision: str | None
    setting: str | None
    size: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Series:
    """The variants to measure, of the standard boxes or of a case.

    `case` is the path of the case file and `base` its tables, or None for the standard boxes. Sizes
    of standard boxes are those of a rank: the slowest axis is multiplied by the number of ranks;
    with `strong` they are those of the whole box. The box of a case file is not changed.
    """

    variants: tuple[Variant, ...]
    case: Path | None = None
    base: dict[str, Any] | None = None
    overrides: Sequence[str] = ()
    backend: str | None = None
    porosity: float = 0.62
    steps: int | None = None
    repeats: int = 5
    strong: bool = False

    def rows(self, comm: Communicator) -> Iterator[Row]:
        """A row for each variant, as soon as it is measured; collective."""
        for variant in self.variants:
            row = self.row(variant, comm)
            say(comm, f"{label(row)}: {row.get('problem') or '{glups:.4g} GLUPS'.format(**row)}")
            yield row

    def row(self, variant: Variant, comm: Communicator) -> Row:
        """Names and figures of a variant, or its `problem`. Collective."""
        row = variant._asdict() | {"setting": variant.setting or str(self.case)}
        with TemporaryDirectory(prefix="mpilbm-") as folder:
            path = self.case or Path(folder, "box.toml")
            try:
                case = self.typed(variant, path, comm)
                row |= {
                    "lattice": case.lattice.name,
                    "collision": ", ".join(fluid.collision.name for fluid in case.fluids),
                    "layout": case.layout.name,
                    "precision": f"{case.precision.compute}/{case.precision.storage}",
                    "size": list(case.domain.size),
                }
                if variant.setting == "porous":
                    together(comm, _write_rock, case, self.porosity)
                    row["rock"] = {"tile": TILE, "radius": RADIUS, "porosity": self.porosity}
                speed = measure(case, comm, self.steps, self.repeats)
            except CaseError as error:
                found = (problem.removeprefix(f"{path}: ") for problem in error.problems)
                return row | {"problem": f"cannot run: {'; '.join(found)}"}
            except NonFiniteError as error:
                return row | {"problem": f"discarded: {error}"}
        figures = ("glups", "spread", "achieved", "share")
        row |= asdict(speed) | {name: getattr(speed, name) for name in figures}
        return row | {"case": case.toml}

    def tables(self, variant: Variant, size: Sequence[int] = ()) -> dict[str, Any]:
        """The tables of a variant; `size` is that of the whole standard box."""
        if self.base is not None:
            tables = copy.deepcopy(self.base)
            for key in ("lattice", "collision", "layout"):
                if name := getattr(variant, key):
                    tables[key] = {"name": name}
            if variant.precision:
                tables["precision"] = tables.get("precision", {}) | PRECISIONS[variant.precision]
        else:
            standard = {key: name for key, name in variant._asdict().items() if key != "size"}
            tables = box(size=size, **standard)
            tables, problems = override(tables, self.overrides)
            if problems:
                raise CaseError(problems)
        return tables | self._backend(tables.get("backend", {}))

    def _backend(self, given: dict[str, Any]) -> dict[str, Any]:
        """The table of the backend: of the given one its options too, if they are for it."""
        if not self.backend:
            return {}
        kept = given if given.get("name", self.backend) == self.backend else {}
        return {"backend": kept | {"name": self.backend}}

    def typed(self, variant: Variant, path: Path, comm: Communicator) -> Case:
        """The case of a variant; a box of the default size shrinks until it fits the memory."""
        if self.case:
            return parse_case(self.tables(variant), path)

        def of(size: tuple[int, ...]) -> Case:
            whole = (*size[:-1], size[-1] * (1 if self.strong else comm.size))
            return parse_case(self.tables(variant, whole), path)

        return of(variant.size) if variant.size else _default(of, dimensions(variant), comm)


def dimensions(variant: Variant) -> int:
    """The number of dimensions of the lattice of a standard box."""
    assert variant.lattice is not None, "a standard box has a lattice"
    return find("lattices", variant.lattice).D


def _default(of: Callable[[tuple[int, ...]], Case], D: int, comm: Communicator) -> Case:
    """The case `of` the default size of this device, smaller if the memory is too small."""
    backend, device, *_ = open_device(of((LEAST_SIDE,) * D).backend, comm)
    side = default = SIDES.get(backend.name, SIDES["cpu"])[D]
    while side > LEAST_SIDE and not _fits(of((side,) * D), device, comm):
        side = max(LEAST_SIDE, side * 3 // 4 // 32 * 32)
    if side < default:
        say(comm, f"note: {side} cells a side, since a box of {default} does not fit the memory")
    return of((side,) * D)


def _fits(case: Case, device: Device, comm: Communicator) -> bool:
    """Whether the arrays of each rank fit into the memory of its device."""
    slab = slabs.split(case.shape, comm.size, case.domain.periodic[-1])[comm.rank]
    try:
        together(comm, memory_plan.require, device, case, slab)
    except CaseError:
        return False
    return True


def _write_rock(case: Case, porosity: float) -> None:
    solid = tiled_rock(case.domain.size[::-1], porosity)
    np.save(case.directory / MASK, solid, allow_pickle=False)


def label(row: Row) -> str:
    """The names and the size of a variant."""
    words = [row[key] for key in Variant._fields[:-1]]
    size = row["size"] and size_text(row["size"])
    return " ".join(word for word in (*words, size) if word)


def size_text(size: Sequence[int]) -> str:
    """128^3, or 128x64x32."""
    sides = "x".join(map(str, size))
    return f"{size[0]}^{len(size)}" if len(set(size)) == 1 < len(size) else sides


# ------------------------------------------------------------------------------ command line


def plan(
    comm: Communicator,
    case: Path | None,
    overrides: Sequence[str],
    options: dict[str, Any],
    defaults: dict[str, str] = DEFAULTS,
    strong: bool = False,
) -> Series:
    """The series of all combinations of the values of options, which are lists with commas.

    `options` holds the texts (or None) for the keys of `defaults` and for `size`, where `all` means
    each existing name, and fields of Series. Raises CommandError for unknown names and for options
    that a case file sets itself, CaseError if the file is invalid. Rank 0 notes earlier names of
    precisions.
    """
    for option in ("size", "setting") if case else ():
        if options[option]:
            raise CommandError(
                f"--{option}: applies to the standard boxes only; override the value of {case} "
                "with --set, for example --set domain.size=[64,64,64]"
            )
    choices: list[Sequence[str | None]] = []
    for option, default in defaults.items():
        text = options[option] or (None if case else default)
        found = [name.strip() for name in text.split(",")] if text else []
        for name, present in EARLIER_PRECISIONS.items() if option == "precision" else ():
            if name in found:
                say(comm, f"note: --precision: {name} is the earlier name of {present}")
                found = [present if each == name else each for each in found]
        choices.append(_allowed(option, found) if text else [None])
    given = options["size"]
    sizes = [None] if given is None else [_sides(size) for size in given.split(",")]
    variants = []
    for chosen, sides in product(product(*choices), sizes):
        lattice, collision, layout, precision, setting = chosen
        variant = Variant(lattice, collision, layout, precision, setting)
        if sides and len(sides) == 1:  # a cube, or in 2D a square
            sides *= dimensions(variant)
        variants.append(variant._replace(size=sides))
    base = tomllib.loads(load_case(case, overrides).toml) if case else None
    more = {key: value for key, value in options.items() if key not in (*defaults, "size")}
    return Series(tuple(variants), case, base, () if case else overrides, strong=strong, **more)


def _allowed(option: str, found: list[str]) -> list[str]:
    """The names, or all if they are ["all"]; CommandError for an unknown name."""
    own = {"precision": tuple(PRECISIONS), "setting": SETTINGS}
    kind = {"lattice": "lattices"}.get(option, f"{option}s")
    allowed = own[option] if option in own else names(kind)
    if found == ["all"]:
        return [name for name in allowed if name != "auto"]  # which stands for one of the others
    for name in found:
        if name not in allowed:
            raise CommandError(f"--{option} {UnknownName(kind, name, (*allowed, 'all'))}")
    return found


def _sides(text: str) -> tuple[int, ...]:
    """(128,) for "128", (128, 64, 32) for "128x64x32"."""
    sides = text.strip().split("x")
    if len(sides) > 3 or not all(side.isdecimal() and int(side) for side in sides):
        raise CommandError(
            f"size of a box: found '{text}'; allowed for --size, --weak and --strong: cells along "
            "each side, 128 for a cube (in 2D a square) or 128x64x32, several with commas"
        )
    return tuple(map(int, sides))

"""The files of a run, complete or not, for Python programs; nothing is changed."""

import json
import re
import tomllib
from collections.abc import Sequence
from functools import cached_property
from os.path import isdir  # False for a name that is too long
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpilbm.errors import CommandError
from mpilbm.results.images import FieldFile, Head, Region
from mpilbm.results.tables import Table, read_table
from mpilbm.storage.own_files import SUMMARY, owned
from mpilbm.units import TIME

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.units import Units

SNAPSHOT, SOLID = "snapshot", "solid"
STEPPED = re.compile(r"(?P<name>.+)_(?P<step>[0-9]{9,18})\.(vtkhdf|h5)")


def open_run(directory: Path | str, verify: bool = False) -> "Run":
    """The results in an output folder; may be called while the run continues.

        run = mpilbm.open_run("cavity.out")
        u = run.field("u")                           # of the last snapshot
        energy = run.table("monitor")["kinetic_energy"]

    `verify`: compare each file with its digest before its first use, which reads all of it. Raises
    CommandError if the folder contains no results.
    """
    return Run(Path(directory), verify)


class Series:
    """Files with the same fields at several steps: all snapshots, or those of a part of the box.

    `steps`: the steps, ascending; `times`: in seconds if the case has [units], else the steps.
    `name`: the first part of the file names.
    """

    def __init__(self, run: "Run", name: str, files: dict[int, Path]):
        self.run, self.name, self.files = run, name, dict(sorted(files.items()))
        self.steps = np.array(list(self.files), np.int64)

    @property
    def times(self) -> np.ndarray:
        """The times of the steps."""
        units = self.run.units
        return self.steps.astype(float) if units is None else units.to_si(self.steps, TIME)

    def file(self, step: int | None = None) -> FieldFile:
        """The file of a step, by default the last one."""
        if not self.files:
            raise CommandError(
                f"{self.run.directory}: holds no {self.name}_*.vtkhdf; add an [[output]] with "
                f"name = '{self.name.partition('_')[0]}' to the case and run it"
            )
        key = int(self.steps[-1]) if step is None else step
        if key not in self.files:
            raise CommandError(
                f"{self.run.directory}: has no '{self.name}' of step {key}; allowed: "
                f"{_shortened(self.steps)}"
            )
        return FieldFile(self.files[key], self.run.dimensions, self.run.verify)

    @cached_property
    def head(self) -> Head:
        """The fields of the last file, and its place in the box."""
        return self.file().head()

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, without `solid`."""
        return tuple(name for name in self.head.fields if name != SOLID)

    def field(
        self,
        name: str,
        step: int | None = None,
        region: Region = None,
        lattice_units: bool = False,
    ) -> np.ndarray:
        """A field as a new array, (nz, ny, nx) or in 2D (ny, nx), components along a last axis.

        `step`: by default the last one. `region`: slices and numbers in this order of axes, such as
        np.s_[16, :, ::2]; only this part is read. Values are in SI if the case has [units], unless
        `lattice_units` is set.
        """
        return self.file(step).field(name, region, lattice_units)

    def centres(self) -> tuple[np.ndarray, ...]:
        """The coordinates of cell centres along x, y (and z), in m if the case has [units]."""
        head = self.head
        sizes = head.shape[::-1][: self.run.dimensions]
        return tuple(
            head.origin[k] + (np.arange(n) + 0.5) * head.spacing[k] for k, n in enumerate(sizes)
        )


class Run:
    """The results of a run; made by `open_run`.

    `directory`: the folder; `paths`: its files that mpilbm has written; `summary`: the content of
    summary.json, {} while there is none. Files that the run writes later are seen by a new
    `open_run`.
    """

    def __init__(self, directory: Path, verify: bool = False):
        self.directory, self.verify = directory, verify
        if not isdir(directory):
            raise CommandError(f"{directory}: no such folder; name the output folder of a run")
        self.paths = [path for path in owned(directory) if path.suffix != ".partial"]
        if not self.paths:
            raise CommandError(
                f"{directory}: contains no results, such as summary.json; name the output folder "
                "of a run"
            )

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json: status, steps, speed, ranks, device and more."""
        path = self.directory / SUMMARY
        try:
            found = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise CommandError(f"{path}: cannot be read as JSON ({error}); remove it") from None
        if not isinstance(found, dict):
            raise CommandError(f"{path}: is not a summary of a run; remove it")
        return found

    @cached_property
    def case(self) -> "Case":
        """The case as it was run."""
        from mpilbm.case.case import parse_case

        return parse_case(self.case_tables, self.directory / SUMMARY)

    @cached_property
    def case_tables(self) -> dict[str, Any]:
        """The tables of the case file, with the keys that --set replaced."""
        text = self.summary.get("case_text")
        if not isinstance(text, str):
            raise CommandError(
                f"{self.directory / SUMMARY}: has no text of the case; it was written by an "
                "earlier version, run the case again"
            )
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CommandError(
                f"{self.directory / SUMMARY}: its case cannot be read: {error}"
            ) from None

    @property
    def title(self) -> str:
        """The title of the case, or the name of the folder."""
        return str(self.summary.get("title") or self.directory.name)

    @property
    def units(self) -> "Units | None":
        """The SI values of the lattice units; None without [units]."""
        return self.case.units

    @property
    def in_si(self) -> bool:
        """Whether fields and coordinates are in SI."""
        return self.units is not None

    @property
    def size(self) -> tuple[int, ...]:
        """Cells along x, y (and z)."""
        return tuple(self.case.domain.size)

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.size)

    @cached_property
    def _stepped(self) -> dict[str, dict[int, Path]]:
        """Files with a step in their names: name -> step -> file."""
        found: dict[str, dict[int, Path]] = {}
        for path in self.paths:
            if match := STEPPED.fullmatch(path.name):
                key = match["name"] + path.suffix
                found.setdefault(key, {})[int(match["step"])] = path
        return found

    @property
    def series(self) -> tuple[str, ...]:
        """The names of outputs with a file for each step, such as "snapshot" or "plane_wake"."""
        return tuple(
            sorted(key.removesuffix(".vtkhdf") for key in self._stepped if key.endswith(".vtkhdf"))
        )

    def part(self, name: str) -> Series:
        """The files of an output by the first part of their names, such as "plane_wake"."""
        if name not in self.series and name != SNAPSHOT:
            raise CommandError(
                f"{self.directory}: has no files of '{name}'; allowed: "
                f"{', '.join(self.series) or 'none, the case has no such output'}"
            )
        return Series(self, name, self._stepped.get(f"{name}.vtkhdf", {}))

    @cached_property
    def snapshots(self) -> Series:
        """The snapshots of the whole box."""
        return self.part(SNAPSHOT)

    @property
    def steps(self) -> np.ndarray:
        """The steps of the snapshots."""
        return self.snapshots.steps

    @property
    def times(self) -> np.ndarray:
        """Their times in seconds if the case has [units], else the steps."""
        return self.snapshots.times

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields in the snapshots."""
        return self.snapshots.fields

    def field(
        self,
        name: str,
        step: int | None = None,
        region: Region = None,
        lattice_units: bool = False,
    ) -> np.ndarray:
        """A field of a snapshot as a new array; see Series.field."""
        return self.snapshots.field(name, step, region, lattice_units)

    def solid(self, step: int | None = None, region: Region = None) -> np.ndarray:
        """True in solid cells; a case without bodies has none."""
        if SOLID in self.snapshots.file(step).head().fields:
            return self.snapshots.field(SOLID, step, region) != 0
        return np.zeros(self.size[::-1], bool)[() if region is None else region]

    @cached_property
    def _table_files(self) -> dict[str, Path]:
        found = [path for path in self.paths if path.suffix in (".csv", ".h5")]
        return {path.stem: path for path in found if not STEPPED.fullmatch(path.name)
                and not re.search("_[0-9]{9,}$", path.stem)}  # fmt: skip

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables over time, such as "monitor" or "forces_ball"."""
        return tuple(sorted(self._table_files))

    def table(self, name: str) -> Table:
        """A table over time."""
        if name not in self._table_files:
            raise CommandError(
                f"{self.directory}: has no table '{name}'; allowed: "
                f"{', '.join(self.tables) or 'none'}"
            )
        return read_table(self._table_files[name])

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints, ascending."""
        return list(dict(sorted(self._stepped.get("checkpoint.h5", {}).items())).values())

    def statistics(self) -> dict[str, dict[str, np.ndarray]]:
        """The newest file of each output `statistics`: its axes -> the name of a mean -> values."""
        found = {}
        for key, files in self._stepped.items():
            if key.startswith("statistics_") and key.endswith(".h5"):
                found[key.removeprefix("statistics_").removesuffix(".h5")] = _datasets(
                    files[max(files)]
                )
        return found

    def __repr__(self) -> str:
        return f"<Run {self.directory}: {len(self.steps)} snapshots; {', '.join(self.tables)}>"


def _datasets(path: Path) -> dict[str, np.ndarray]:
    from mpilbm.system.hdf5_input import group_datasets, opened, values

    try:
        with opened(path) as file:
            found = {name: values(file, name) for name in group_datasets(file, "/")}
            for each in found.values():
                if each is not None:
                    each.require_stored()
            return {name: each[()] for name, each in found.items() if each is not None}
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def _shortened(steps: Sequence[int] | np.ndarray) -> str:
    """Some of the steps in words."""
    texts = [str(step) for step in steps]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "…", *texts[-2:]])

"""Reads the files that a run has written, for Python programs, pictures and reports.

`open_run` accepts complete and incomplete runs; nothing is changed.
"""

import re
import tomllib
from functools import cached_property
from os.path import isdir  # False for a name that is too long
from pathlib import Path
from typing import Any

import numpy as np

from mpilbm.case.case import Case
from mpilbm.case.given_objects import require_path
from mpilbm.case.tables import MOST_TITLE
from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_digest import DamagedJsonError, unsealed
from mpilbm.core.printable import one_line
from mpilbm.core.units import Units
from mpilbm.outputs.core.summary import DONE
from mpilbm.storage.directory import SUMMARY, owned
from mpilbm.storage.tables import BEFORE
from mpilbm.view.results.fields import SOLID, Region, Series
from mpilbm.view.results.state import RunState, state_of
from mpilbm.view.results.tables import AXES, Profile, Table, read_means, read_profile, read_table

SNAPSHOT = "snapshot"
STEPPED = re.compile(r"(?P<name>.+)_(?P<step>[0-9]{9,18})\.(vtkhdf|h5)")


def open_run(directory: Path | str, verify: bool = False) -> "Run":
    """The results in an output folder; may be called while the run continues.

        run = mpilbm.open_run("cavity.out")
        u = run.field("u")                           # of the last snapshot
        energy = run.table("monitor")["kinetic_energy"]

    `verify`: compare each file with its digest, and each row of a table with its checksum, before
    the first use, which reads all of the file; a CommandError names the damaged file. Raises
    CommandError if the folder contains no results, UsageError if `directory` is not a path.
    """
    require_path("open_run", directory, "a folder")
    return Run(Path(directory), verify)


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
            return unsealed(path.read_text("utf-8"), self.verify)
        except FileNotFoundError:
            return {}
        except DamagedJsonError as error:
            raise CommandError(f"{path}: is damaged: {error}; remove it") from None
        except (OSError, ValueError) as error:
            raise CommandError(f"{path}: cannot be read as JSON ({error}); remove it") from None

    @property
    def state(self) -> RunState:
        """Whether the run is running, done, killed, stopped or failed, and its last step."""
        return state_of(self.directory, self.summary)

    @property
    def unfinished(self) -> list[str]:
        """A line if the results are not those of a complete run."""
        state = self.state
        complete = state.status == DONE or not self.summary
        return [] if complete else [f"the run is not complete: {state.sentence}"]

    @cached_property
    def case(self) -> Case:
        """The case as it was run, with the names of its input files in place of their content.

        Of arrays and functions of a Python program it has the references.
        """
        from mpilbm.case.case import recorded_case

        return recorded_case(self.case_tables, self.directory / SUMMARY)

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
        return one_line(self.summary.get("title") or self.directory.name, MOST_TITLE)

    @property
    def units(self) -> Units | None:
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
        head = self.snapshots.file(step).head()
        if SOLID in head.fields:
            return self.snapshots.field(SOLID, step, region) != 0
        return np.zeros(head.shape[-self.dimensions :], bool)[() if region is None else region]

    @cached_property
    def _table_files(self) -> dict[str, Path]:
        return {
            path.stem: path
            for path in self.paths
            if path.suffix in (".csv", ".h5")
            and not STEPPED.fullmatch(path.name)
            and not re.search(f"_[0-9]{{9,}}$|{BEFORE}$", path.stem)
        }

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
        return read_table(self._table_files[name], self.verify)

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints, ascending."""
        return list(dict(sorted(self._stepped.get("checkpoint.h5", {}).items())).values())

    @cached_property
    def _statistics_files(self) -> dict[str, Path]:
        """The newest file of each output `statistics` by its axes."""
        return {
            key.removeprefix("statistics_").removesuffix(".h5"): files[max(files)]
            for key, files in self._stepped.items()
            if key.startswith("statistics_") and key.endswith(".h5")
        }

    def statistics(self) -> dict[str, dict[str, np.ndarray]]:
        """The newest file of each output `statistics`: its axes -> the name of a mean -> values."""
        files = self._statistics_files.items()
        return {axes: read_means(path, self.verify) for axes, path in files}

    @property
    def profiles(self) -> dict[str, Profile]:
        """The profiles of outputs `statistics` along one axis: "y" -> the newest profile."""
        return {
            axis: read_profile(path, axis, self.verify)
            for axis, path in sorted(self._statistics_files.items())
            if axis in tuple(AXES)
        }

    def __repr__(self) -> str:
        return f"<Run {self.directory}: {len(self.steps)} snapshots; {', '.join(self.tables)}>"

"""Files with the same fields at several steps of a run."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.units import TIME, Units
from mpilbm.view.results.images import SOLID, FieldFile, Head, Region


class Origin(Protocol):
    """What a series needs of its run."""

    directory: Path
    verify: bool

    @property
    def dimensions(self) -> int:
        """2 or 3."""

    @property
    def units(self) -> Units | None:
        """The SI values of the lattice units; None without [units]."""


class Series:
    """Files with the same fields at several steps: all snapshots, or those of a part of the box.

    `steps`: the steps, ascending; `times`: in seconds if the case has [units], else the steps.
    `name`: the first part of the file names.
    """

    def __init__(self, run: Origin, name: str, files: dict[int, Path]):
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


def _shortened(steps: Sequence[int] | np.ndarray) -> str:
    """Some of the steps in words."""
    texts = [str(step) for step in steps]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "…", *texts[-2:]])

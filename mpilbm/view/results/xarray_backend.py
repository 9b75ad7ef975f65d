"""Snapshots of a run as an xarray dataset: xarray.open_dataset("RUN.out", engine="mpilbm")."""

import os
from collections.abc import Iterable
from os.path import isfile  # False for a name that is too long
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from mpilbm.core.errors import CommandError
from mpilbm.storage.directory import SUMMARY
from mpilbm.view.results import SNAPSHOT, open_run
from mpilbm.view.results.fields import Series

CELLS = ("z", "y", "x")


class MpilbmBackend(BackendEntrypoint):
    """Opens the output folder of a run; values are read from the files where they are indexed.

    Dimensions: time, z, y, x, and component for vectors; in 2D without z. Coordinates are the times
    and cell centres, in s and m if the case has [units], else in steps and cells. `part`: another
    output with the same fields at several steps, such as "plane_wake".
    """

    description = "Output folders of mpilbm"
    open_dataset_parameters: ClassVar[tuple[str, ...]] = (
        "filename_or_obj",
        "drop_variables",
        "part",
    )

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        part: str = SNAPSHOT,
    ) -> xr.Dataset:
        """The dataset; raises CommandError if the folder has no such output."""
        run = open_run(filename_or_obj)
        series = run.part(part)
        if not series.head.shape:
            raise CommandError(
                f"{run.directory}: '{part}' has no regular cells; allowed: snapshots, planes, "
                "boxes and lines"
            )
        dropped = [drop_variables] if isinstance(drop_variables, str) else drop_variables or ()
        names = [name for name in series.fields if name not in set(dropped)]
        return xr.Dataset(
            {name: _variable(series, name) for name in names},
            _coordinates(series),
            {"title": run.title, "case": str(run.summary.get("case_text", ""))},
        )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is a folder with the summary of a run."""
        return isinstance(filename_or_obj, str | os.PathLike) and isfile(
            Path(filename_or_obj) / SUMMARY
        )


class FieldArray(BackendArray):
    """A field at all steps with the shape (time, z, y, x[, component]), in 2D without z."""

    def __init__(self, series: Series, name: str):
        shape, self.dtype, self.unit = series.file().description(name)
        self.series, self.name = series, name
        self.shape = (len(series.steps), *shape)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """The values of numbers and slices with positive steps, one for each axis."""
        time, cells = key[0], key[1 : 1 + self.series.run.dimensions]
        rest = (..., *key[1 + self.series.run.dimensions :])
        chosen = self.series.steps[time]
        if np.ndim(chosen) == 0:
            return self._step(int(chosen), cells)[rest]
        found = [self._step(int(step), cells)[rest] for step in chosen]
        return np.stack(found) if found else np.empty(self.shape, self.dtype)[key]

    def _step(self, step: int, cells: tuple[Any, ...]) -> np.ndarray:
        found = self.series.file(step).description(self.name)[0]
        if found != self.shape[1:]:
            raise CommandError(
                f"{self.series.files[step]}: '{self.name}' has shape {found}; allowed: "
                f"{self.shape[1:]}, as in the last file; open the steps with mpilbm.open_run"
            )
        return self.series.field(self.name, step, cells)


def _variable(series: Series, name: str) -> xr.Variable:
    values = FieldArray(series, name)
    cells = CELLS[-series.run.dimensions :]
    more = values.shape[1 + len(cells) :]
    last = "component" if more == (len(cells),) else f"{name}_component"
    dims = ("time", *cells, *((last,) if more else ()))
    attributes = {"units": values.unit} if values.unit else {}
    return xr.Variable(dims, indexing.LazilyIndexedArray(values), attributes)


def _coordinates(series: Series) -> dict[str, xr.Variable]:
    length, time = ("m", "s") if series.run.units is not None else ("cells", "steps")
    found = {
        axis: xr.Variable(axis, centres, {"units": length})
        for axis, centres in zip("xyz", series.centres(), strict=False)
    }
    # "unit" and not "units": xarray would decode the times into dates or durations.
    found["time"] = xr.Variable("time", series.times, {"unit": time})
    found["step"] = xr.Variable("time", series.steps)
    return found

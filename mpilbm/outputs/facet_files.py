"""Files of values on facets, one for each step, and the time series of them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mpilbm.outputs import Context
from mpilbm.outputs.images.vtkhdf import Arrays, SeriesFile, Shapes, describe_facets
from mpilbm.parallel import on_root
from mpilbm.storage.planes import OwnFile, PlaneFile

if TYPE_CHECKING:
    import h5py

FIELDS = {"pressure": 1, "shear": 3, "shear_magnitude": 1, "y_plus": 1, "force": 3}  # components


class FacetFiles:
    """The files `<stem>_<step>.vtkhdf`; a thread of rank 0 writes them, if it can."""

    def __init__(self, context: Context, stem: str):
        self.context, self.stem = context, stem
        self._series: SeriesFile | None = None

    def write(self, step: int, shapes: Shapes, values: Callable[[], Arrays]) -> None:
        """Write the file of a step; collective.

        shapes: of the datasets, by path; values: returns them. Both are used on rank 0 only.
        """
        context, name = self.context, f"{self.stem}_{step:09d}.vtkhdf"
        if self._series is None:
            self._series = on_root(context.comm, self._open_series)
        describe = partial(self._describe, step, shapes)
        if not context.files.in_threads:
            with context.files.create(name, describe) as file:
                on_root(context.comm, self._fill, file, values)
                file.commit()
            on_root(context.comm, self._series.add, step)
            return
        create, publish = partial(context.files.create_own, name, describe), self._publish
        job = context.background.begin(create, partial(publish, step))
        fill = [partial(self._fill, job.file, values)] if context.comm.rank == 0 else []
        job.end(fill, [job.file.flush])

    def _open_series(self) -> SeriesFile:
        context = self.context
        return SeriesFile(context.directory, self.stem, context.case.units, context.first_step)

    def _describe(self, step: int, shapes: Shapes, file: "h5py.File") -> None:
        describe_facets(file, self.context.case, step, shapes)

    def _fill(self, file: PlaneFile, values: Callable[[], Arrays]) -> None:
        """Write all datasets; on rank 0, in any thread."""
        for path, each in values().items():
            if each.size:  # HDF5 gives an empty dataset no place
                file.file.put(f"VTKHDF/{path}", each)

    def _publish(self, step: int, file: OwnFile) -> None:
        """Rename a file and add it to the series; on rank 0, in any thread."""
        file.publish()
        assert self._series is not None
        self._series.add(step)

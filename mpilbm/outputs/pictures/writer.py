"""The pictures of the output `picture` during a run, drawn in a thread of rank 0."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

import numpy as np

from mpilbm.core.errors import FileSystemError
from mpilbm.outputs import Context
from mpilbm.outputs.drawing.isosurface import DrawingFailed
from mpilbm.outputs.images.values import SOLID, at_nodes
from mpilbm.outputs.pictures import film
from mpilbm.parallel.agree import on_root
from mpilbm.solver.fields.point_fields import PointFields
from mpilbm.storage.files import whole


class Drawing(Protocol):
    """What a picture shows.

    fields            the fields that it needs
    planes, rows, x   the cells along z, y, x (in 2D along y, one row, and x) at which it needs them
    """

    fields: tuple[str, ...]
    planes: np.ndarray
    rows: np.ndarray
    x: np.ndarray

    def require(self) -> None:
        """CommandError if it cannot be drawn here; on rank 0 before the first step."""

    def content(self, step: int, values: dict[str, np.ndarray], solid: np.ndarray) -> bytes:
        """The PNG file; values (planes, rows, x[, components]). May raise DrawingFailed."""


class PictureWriter:
    """Each rank computes the values of its cells; a thread of rank 0 draws.

    The files are `<stem>_<step>.png`, and `<stem>.mp4` with `with_film`. A picture that cannot be
    drawn is left out, with one warning; the run continues.
    """

    def __init__(self, drawing: Drawing, context: Context, stem: str, with_film: bool):
        self.drawing, self.context, self.stem, self.with_film = drawing, context, stem, with_film
        on_root(context.comm, drawing.require)
        slab = context.slab
        mine = drawing.planes[(drawing.planes >= slab.begin) & (drawing.planes < slab.end)]
        axes = mine - slab.begin, drawing.rows, drawing.x
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        self.points = PointFields(context.solver.diagnostics, drawing.fields, nodes)
        cut = np.ix_(drawing.rows, drawing.x)
        own = [at_nodes(context, SOLID, {}, k, k + 1)[0][cut].reshape(-1) for k in axes[0]]
        parts = context.comm.gather(np.concatenate([*own, np.empty(0, bool)]))
        self.solid = None if parts is None else self._shaped(np.concatenate(parts))
        self._pool: ThreadPoolExecutor | None = None
        self._drawn: Future[None] | None = None
        self._warned = False
        if context.comm.rank == 0:
            context.rows.append(self)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Values of all nodes as (planes, rows, x[, components])."""
        drawing = self.drawing
        size = len(drawing.planes), len(drawing.rows), len(drawing.x)
        return values.reshape(*size, *values.shape[1:])

    def write(self, step: int) -> None:
        """Enqueue the values of this step; the picture is drawn when they are known. Collective."""
        self.points.prepare()
        values = self.points.start()

        def complete() -> None:
            mine = values()
            parts = self.context.comm.gather({name: mine[name] for name in self.drawing.fields})
            on_root(self.context.comm, self._draw, step, parts)

        self.context.samples.add(complete)

    def _draw(self, step: int, parts: list[dict[str, np.ndarray]]) -> None:
        """Have a thread draw; waits for the previous picture, whose error it raises."""
        self._finish_drawing()
        self._pool = self._pool or ThreadPoolExecutor(1, "mpilbm-picture")
        values = {name: self._shaped(np.concatenate([part[name] for part in parts]))
                  for name in self.drawing.fields}  # fmt: skip
        self._drawn = self._pool.submit(self._save, step, values)

    def _finish_drawing(self) -> None:
        if self._drawn is None:
            return
        try:
            self._drawn.result()
        except DrawingFailed as error:
            if not self._warned:
                self.context.say(
                    f"warning: {self.stem}: a picture could not be drawn: {error}; further "
                    "failures are not reported"
                )
            self._warned = True
        self._drawn = None

    def sync(self) -> None:
        """Wait until all pictures are on the disk; in any thread. OSError if one cannot be."""
        drawn = self._drawn
        if drawn is not None:
            with suppress(DrawingFailed):
                drawn.result()

    def _save(self, step: int, values: dict[str, np.ndarray]) -> None:
        assert self.solid is not None
        content = self.drawing.content(step, values, self.solid)
        with whole(self.context.directory / f"{self.stem}_{step:09d}.png", "wb") as file:
            file.write(content)

    def close(self) -> None:
        """Complete the last picture; make the film unless a file has failed. On rank 0."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        with pool:  # ends the thread
            self._finish_drawing()
        failed = isinstance(self.context.error, FileSystemError)
        kind = film.ending() if self.with_film and not failed else None
        pictures = sorted(self.context.directory.glob(f"{self.stem}_[0-9]*.png"))
        if kind and pictures:
            path = self.context.directory / f"{self.stem}{kind}"
            try:
                film.write_film(path, pictures)
            except (OSError, RuntimeError) as error:
                reason = str(error).strip().partition("\n")[0]
                self.context.say(f"warning: {path.name} could not be made: {reason}")

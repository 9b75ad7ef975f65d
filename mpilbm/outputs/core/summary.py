"""summary.json: the case, device, speed and end of a run."""

from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from typing import Any, Self

from mpilbm import __version__
from mpilbm.core.errors import INTERRUPTED
from mpilbm.core.files.file_digest import sealed
from mpilbm.outputs import Context, number_of_cells
from mpilbm.parallel import on_root
from mpilbm.storage import whole
from mpilbm.storage.directory import SUMMARY

LONG = 5.0  # seconds of stepping after which the bandwidth of a copy is measured, too
RUNNING, DONE = "running", "done"
STATUS = {0: DONE, 2: "refused", 3: "unstable", 4: "stopped", 5: "file system failed"}
STATUS |= {INTERRUPTED: "interrupted"}


class Summary:
    """The summary of a run, written by rank 0 at the start, with the status `running`, and the end.

    A context manager around the time steps. The caller updates `step` and `reason`; an error that
    ends the run replaces the reason.
    """

    def __init__(self, context: Context, facts: dict[str, Any]):
        case, self.comm = context.case, context.comm
        self.case = case
        self.directory, self.clock, self.solver = context.directory, context.clock, context.solver
        self.first = self.step = context.first_step
        self.last = max(self.first, case.run.steps)
        self.reason, self.done, self.findings = "", False, context.findings
        self.results = context.results
        self.cells = number_of_cells(case)
        self.content = {
            "version": __version__,
            "title": case.title,
            "case": str(case.path),
            "case_text": case.toml,
            "settings": list(case.settings),
            "lattice": case.lattice.name,
            "size": list(case.domain.size),
            "precision": {"compute": case.precision.compute, "storage": case.precision.storage},
            **facts,
        }

    def __enter__(self) -> Self:
        on_root(self.comm, self._begin)
        return self

    def _begin(self) -> None:
        found = (output.lengths(self.case).items() for output in self.case.outputs)
        self.content["lengths"] = dict(chain.from_iterable(found))
        self._write(RUNNING, None)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.done = error is None
        if error is None:
            on_root(self.comm, self._write, DONE, 0)
        elif self.comm.rank == 0:
            interrupted = isinstance(error, KeyboardInterrupt)
            code = getattr(error, "exit_code", INTERRUPTED if interrupted else 1)
            self.reason = str(error) or type(error).__name__
            status = STATUS[INTERRUPTED] if interrupted else STATUS.get(code, "failed")
            with suppress(OSError):  # the error that ends the run is more important
                self._write(status, code)

    def _write(self, status: str, code: int | None) -> None:
        content = {**self.content, **self._figures(), **self.results}
        content["findings"] = [asdict(found) for found in self.findings]
        content |= {"status": status, "reason": self.reason, "exit_code": code}
        path, text = self.directory / SUMMARY, sealed(content)
        try:
            with whole(path) as file:
                file.write(text)
        except OSError:
            if code is None or not path.exists():
                raise
            # a full disk has room for it in the existing file
            with open(path, "r+", encoding="utf-8") as file:
                file.write(text)
                file.truncate()

    def _figures(self) -> dict[str, Any]:
        """Steps and times; GLUPS count all cells of the box, and the time of stepping only."""
        clock, steps = self.clock, self.step - self.first
        busy = clock.stepping + clock.outputs
        glups = self.cells * steps / clock.stepping / 1e9 if clock.stepping else 0.0
        return {
            "first_step": self.first,
            "last_step": self.last,
            "steps": self.step,
            "wall_seconds": round(clock.wall, 3),
            "stepping_seconds": round(clock.stepping, 3),
            "glups": glups,
            "output_share": clock.outputs / busy if busy else 0.0,
            **self._times(),
            **self._share_of_copy(glups),
        }

    def _times(self) -> dict[str, Any]:
        """Times of a step; None if the device failed, which ended the run."""
        times = self.solver.times
        try:
            return {"halo_hidden": times.hidden, "split": times.split}
        except Exception:
            if self.done:
                raise
            return {"halo_hidden": None, "split": None}

    def _share_of_copy(self, glups: float) -> dict[str, float]:
        """After a long run: the bytes that updates move, relative to a copy on rank 0's device."""
        if self.clock.stepping < LONG or not self.done:
            return {}
        bandwidth = self.solver.device.copy_bandwidth()
        needed = glups * 1e9 / self.comm.size * self.solver.bytes_per_update
        return {"copy_bandwidth": bandwidth, "copy_share": needed / bandwidth}

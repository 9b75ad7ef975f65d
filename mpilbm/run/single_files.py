"""Files that a program asks for: a snapshot or a checkpoint of the present step."""

from collections.abc import Sequence
from pathlib import Path

from mpilbm.errors import UsageError
from mpilbm.outputs import Context
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.run.arguments import require_names, require_path
from mpilbm.storage.planes import PlaneFiles


def save(context: Context, path: Path | str, fields: Sequence[str]) -> None:
    """Write fields as a snapshot, and wait; collective. UsageError for unknown fields."""
    require_path("save", path)
    require_names("save", fields)
    output = Snapshot(every=1, fields=(fields,) if isinstance(fields, str) else tuple(fields))
    if problems := output.problems(context.case):
        raise UsageError([f"save: {problem}" for problem in problems])
    folder, name = _place(context, Path(path), "save")
    output.open(context).write_file(folder, name, context.solver.steps)


def checkpoint(context: Context, path: Path | str) -> None:
    """Write the complete state, and read it back; collective. NonFiniteError."""
    require_path("checkpoint", path)
    folder, name = _place(context, Path(path), "checkpoint")
    context.totals.check(context.solver.steps)
    Checkpoint(every=1).open(context).write_file(folder, name, context.solver.steps)


def _place(context: Context, path: Path, call: str) -> tuple[PlaneFiles, str]:
    """The folder of a file, and its name; UsageError on all ranks if there is no folder."""
    is_folder, has_folder = context.comm.bcast((path.is_dir(), path.parent.is_dir()))
    if is_folder or not has_folder:
        problem = "is a folder; add a file name" if is_folder else "its folder does not exist"
        raise UsageError(f"{call} '{path}': {problem}; give the path of a file in a folder")
    return PlaneFiles(path.parent, context.comm, context.slabs), path.name

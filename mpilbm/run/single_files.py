"""Files that a program asks for: a snapshot or a checkpoint of the present step."""

from collections.abc import Sequence
from pathlib import Path

from mpilbm.case.given.objects import require_path
from mpilbm.core.errors import UsageError
from mpilbm.outputs import Context
from mpilbm.outputs.checkpoint import Checkpoint
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.parallel.agree import on_root
from mpilbm.run.arguments import require_flag, require_names
from mpilbm.storage.files import obstacle
from mpilbm.storage.planes import PlaneFiles


def save(context: Context, path: Path | str, fields: Sequence[str], overwrite: bool) -> None:
    """Write fields as a snapshot, and wait; collective. UsageError for unknown fields."""
    require_path("save", path)
    require_names("save", fields)
    output = Snapshot(every=1, fields=(fields,) if isinstance(fields, str) else tuple(fields))
    if problems := output.problems(context.case):
        raise UsageError([f"save: {problem}" for problem in problems])
    folder, name = _place(context, Path(path), "save", overwrite)
    output.open(context).write_file(folder, name, context.solver.steps)


def checkpoint(context: Context, path: Path | str, overwrite: bool) -> None:
    """Write the complete state, and read it back; collective. NonFiniteError."""
    require_path("checkpoint", path)
    folder, name = _place(context, Path(path), "checkpoint", overwrite)
    context.totals.check(context.solver.steps)
    Checkpoint(every=1).open(context).write_file(folder, name, context.solver.steps)


def _place(context: Context, path: Path, call: str, overwrite: bool) -> tuple[PlaneFiles, str]:
    """The folder of a file, and its name.

    UsageError on all ranks if there is no folder, or another file that must not be replaced.
    """
    require_flag(call, "overwrite", overwrite)
    if problem := on_root(context.comm, _problem, path, overwrite):
        raise UsageError(f"{call} '{path}': {problem}")
    return PlaneFiles(path.parent, context.comm, context.slabs), path.name


def _problem(path: Path, overwrite: bool) -> str:
    fix = "give the path of a file in a folder"
    if path.is_dir():
        return f"is a folder; add a file name; {fix}"
    if not path.parent.is_dir():
        return f"its folder does not exist; {fix}"
    return obstacle(path, overwrite, "give overwrite=True")

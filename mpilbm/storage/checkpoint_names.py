"""Names of checkpoint files: `checkpoint_<step, at least nine digits>.h5`."""

import re
from pathlib import Path

PATTERN = "checkpoint_*.h5"


def existing(directory) -> list[tuple[int, Path]]:
    """(step, path) of the checkpoints in a directory, the newest last."""
    steps = ((step_in_name(path), path) for path in Path(directory).glob(PATTERN))
    return sorted((step, path) for step, path in steps if step is not None)


def step_in_name(path) -> int | None:
    """The step that the name of a checkpoint has; None if it has another form."""
    match = re.fullmatch(r"checkpoint_([0-9]{9,})\.h5", Path(path).name)
    return int(match[1]) if match else None

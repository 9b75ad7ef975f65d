"""Names of checkpoint files: `checkpoint_<step>.h5`, the step with at least nine digits."""

import re
from pathlib import Path

PATTERN = "checkpoint_*.h5"


def existing(directory: Path | str) -> list[tuple[int, Path]]:
    """(step, path) of the checkpoints in a folder, in the order of their steps."""
    steps = ((step_in_name(path), path) for path in Path(directory).glob(PATTERN))
    return sorted((step, path) for step, path in steps if step is not None)


def step_in_name(path: Path | str) -> int | None:
    """The step in the name of a checkpoint; None if the name has another form."""
    match = re.fullmatch(r"checkpoint_([0-9]{9,})\.h5", Path(path).name)
    return int(match[1]) if match else None

"""The stripes of the files in an output folder on Lustre.

Lustre keeps a file on as many of its targets as the file has stripes. By default this is one, whose
bandwidth all ranks would share. The stripe count of a folder applies to files created in it later.
"""

import re
import shlex
import subprocess
from pathlib import Path

from mpilbm.core.errors import MpilbmError
from mpilbm.core.machine import processes
from mpilbm.storage.file_system import MOUNTS, kind

MOST_STRIPES = 16
SECONDS = 20.0  # in which `lfs` must answer
DEFAULTS = ["0", "1"]  # stripe counts of a folder that nobody has set


def spread(directory: Path, ranks: int, mounts: Path = MOUNTS) -> str:
    """Set the stripe count of a folder on Lustre for files of many ranks; to be called by one rank.

    Returns a line for the user: the command that was executed, or the one to execute where `lfs`
    is missing or fails; "" if nothing is to do. A folder with more stripes, or with a layout of
    several components, keeps its layout.
    """
    if ranks == 1 or kind(directory, mounts) != "lustre":
        return ""
    command = ["setstripe", "-c", f"{min(ranks, MOST_STRIPES)}", str(directory.resolve())]
    text = shlex.join(["lfs", *command])
    lfs = processes.locate("lfs")
    if lfs is None:
        return _advice(directory, text, "lfs is not in PATH")
    found = _output(lfs, "getstripe", "-d", command[-1])
    counts = re.findall(r"stripe_count:\s*(-?\d+)", found or "")
    if counts and counts not in ([count] for count in DEFAULTS):
        return ""
    if found is None or _output(lfs, *command) is None:
        return _advice(directory, text, "lfs failed")
    return f"{directory} is on Lustre: executed {text} (spreads files over several targets)"


def _output(*command: str) -> str | None:
    """What a command prints; None if it fails."""
    try:
        done = processes.run(command, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, MpilbmError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _advice(directory: Path, text: str, why: str) -> str:
    return (
        f"{directory} is on Lustre; many ranks write faster to files that have several stripes, "
        f"but {why}; execute: {text} (for files that are written later)"
    )

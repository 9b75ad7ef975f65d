"""Child processes. None of them executes a file merely because the current folder contains it.

Python would import modules from the current folder, and so would a shell's search for a program if
PATH has an empty or relative entry. A folder that was downloaded must not execute code that way.
"""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mpilbm.errors import MpilbmError

# Import this very package, wherever this process found it; then nothing else from that folder.
_SAME_PACKAGE = "import sys; sys.path.insert(0, {!r}); import mpilbm; del sys.path[0]\n"
_RUN_MODULE = "import runpy; runpy.run_module({!r}, run_name='__main__', alter_sys=True)"


def python(text: str, *words: str) -> list[str]:
    """The command that executes a Python text, which can import this package."""
    root = str(Path(__file__).parents[2])
    return [sys.executable, "-P", "-c", _SAME_PACKAGE.format(root) + text, *words]


def module(name: str, *words: str) -> list[str]:
    """The command that executes a module of this package, as `python -m name` would."""
    return python(_RUN_MODULE.format(name), *words)


def search_path(environment: Mapping[str, str] = os.environ) -> str:
    """PATH without empty and relative entries, which depend on the current folder."""
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))


def environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a child: the given one, with the PATH of `search_path`."""
    return dict(given) | {"PATH": search_path(given)}


def locate(program: str, *folders: str) -> str | None:
    """The absolute path of a program, in these folders or in PATH; None if it is not found."""
    if os.path.dirname(program) and not os.path.isabs(program):
        return None
    return shutil.which(program, path=os.pathsep.join([*folders, search_path()]))


def run(command, **options) -> subprocess.CompletedProcess:
    """`subprocess.run` that captures texts; raises MpilbmError if no process can be started."""
    options = {"capture_output": True, "text": True, "errors": "replace"} | options
    options.setdefault("env", environment())
    try:
        return subprocess.run(command, **options)
    except OSError as error:
        refuse_if_exhausted(error, f"{command[0]} cannot be started")
        raise


def refuse_if_exhausted(error: OSError, what: str) -> None:
    """Raise MpilbmError if a limit of this machine or process caused the error."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    causes = {
        errno.EMFILE: f"too many open files, of which a process may have {files}; raise this "
        "limit: ulimit -n 1024",
        errno.ENFILE: "too many open files on this machine; close other programs or raise the "
        "limit: sysctl fs.file-max",
        errno.EAGAIN: "too many processes; close other programs or raise the limit: ulimit -u",
        errno.ENOMEM: "not enough memory; close other programs or raise the limit of the job",
    }
    if error.errno in causes:
        raise MpilbmError(f"{what}: {causes[error.errno]}") from error

"""This machine: kernel cache, child processes, command line, terminal.

This module starts child processes, which never execute a file because it is in the current folder.
Python imports modules from the current folder, and programs are searched there if PATH has an empty
or relative entry. A downloaded folder must not be able to execute code in this way.
"""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpilbm.core.errors import MpilbmError

# Import this package from where this process found it, and nothing else from that folder.
_SAME_PACKAGE = "import sys; sys.path.insert(0, {!r}); import mpilbm; del sys.path[0]\n"
_RUN_MODULE = "import runpy; runpy.run_module({!r}, run_name='__main__', alter_sys=True)"


def python(text: str, *words: str) -> list[str]:
    """The command that executes a Python text that can import this package."""
    root = str(Path(__file__).parents[3])
    return [sys.executable, "-P", "-c", _SAME_PACKAGE.format(root) + text, *words]


def module(name: str, *words: str) -> list[str]:
    """The command that executes a module of this package, like `python -m name`."""
    return python(_RUN_MODULE.format(name), *words)


def search_path(environment: Mapping[str, str] = os.environ) -> str:
    """PATH without empty and relative entries, which depend on the current folder."""
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))


def environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a child: the given one with the PATH of `search_path`."""
    return dict(given) | {"PATH": search_path(given)}


def locate(program: str, *folders: str) -> str | None:
    """The absolute path of a program in these folders or in PATH; None if it is not found."""
    if os.path.dirname(program) and not os.path.isabs(program):
        return None
    return shutil.which(program, path=os.pathsep.join([*folders, search_path()]))


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess:
    """`subprocess.run` that captures the output as text; MpilbmError if no process can start."""
    defaults: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
    defaults["env"] = environment()
    try:
        return subprocess.run(command, **(defaults | options))
    except OSError as error:
        refuse_if_exhausted(error, f"{command[0]} cannot be started")
        raise


def refuse_if_exhausted(error: OSError, what: str) -> None:
    """Raise MpilbmError if the error was caused by a limit of this machine or process."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    causes = {
        errno.EMFILE: f"too many open files; allowed: {files} per process; raise this "
        "limit: ulimit -n 1024",
        errno.ENFILE: "too many open files on this machine; close other programs or raise the "
        "limit: sysctl fs.file-max",
        errno.EAGAIN: "too many processes; close other programs or raise the limit: ulimit -u",
        errno.ENOMEM: "not enough memory; close other programs or raise the limit of the job",
    }
    if error.errno in causes:
        raise MpilbmError(f"{what}: {causes[error.errno]}") from error

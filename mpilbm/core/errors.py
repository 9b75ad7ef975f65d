"""Errors for the user and the exit code of each: wrong input, and failures of the machine.

Of a package that cannot be imported they say which file, from which folder, and the fix.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path, PurePath
from traceback import walk_tb

from mpilbm.core.printable import one_line

# Exit code of a process that Ctrl-C ended, as in shells: 128 + SIGINT.
INTERRUPTED = 130


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C ends the process before there is anything to save."""

    def __init__(self, name: str, number: int):
        super().__init__(f"ended by {name} before the first step")
        self.exit_code = 128 + number


class MpilbmError(Exception):
    """A message for the user: where, value found, allowed values, fix. Shown without a traceback.

    `problem` is a line or a list of lines. Control characters within a line, such as a line break
    in a name, become escapes. `failed` is False if the run ended as intended.
    """

    exit_code = 1
    failed = True

    def __init__(self, problem: str | list[str]):
        lines = [problem] if isinstance(problem, str) else problem
        self.problems = [one_line(line) for line in lines]
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class CaseError(MpilbmError):
    """The case is wrong: one line per problem, `file: key path: value found; fix`."""

    exit_code = 2

    def __init__(
        self, problem: str | list[str], where: str = "", path: PurePath | str | None = None
    ):
        problems = [problem] if isinstance(problem, str) else list(problem)
        lead = ": ".join(str(part) for part in (path, where) if part)
        super().__init__([f"{lead}: {text}" if lead else text for text in problems])


class CommandError(MpilbmError):
    """The command line is wrong."""

    exit_code = 2


class FunctionError(RuntimeError):
    """A function of a Python program that fails during the steps, on this rank alone.

    It is no MpilbmError, since the other ranks do not raise it: a program that continued on one
    rank would leave them waiting.
    """


class OtherRankError(RuntimeError):
    """A fault of the program on another rank, which the message names; that rank raises the fault.

    It is no MpilbmError, since the user cannot correct it.
    """


class UsageError(MpilbmError):
    """A call of the Python interface is wrong: an unknown field, an array of another shape."""

    exit_code = 2


class PluginError(MpilbmError):
    """A plug-in of the user is wrong; the cause is the error that Python raised."""

    exit_code = 2


class NonFiniteError(MpilbmError):
    """The flow or a scalar became infinite or not a number, the flow faster than sound, or a scalar
    went far beyond its bounds; found at `step`."""

    exit_code = 3

    def __init__(self, problem: str | list[str], step: int = 0):
        super().__init__(problem)
        self.step = step  # pickled with the other attributes, not as an argument


class BodyError(NonFiniteError):
    """A body that moves freely touches a wall or another body, leaves the box, or is too fast."""


class StoppedEarly(MpilbmError):
    """A signal or the wall-time limit ended the run after it wrote a complete checkpoint."""

    exit_code = 4
    failed = False


class FileSystemError(MpilbmError):
    """Reading or writing failed: full disk, no permission, a damaged file."""

    exit_code = 5


INSTALLED = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
OWN = Path(__file__).parents[1].name
TAG = re.compile(r"\.cpython-(\d)(\d+)-")  # of compiled modules, for one version of Python


def import_problem(error: BaseException) -> str | None:
    """A line about a package of others that cannot be imported; None for other errors."""
    found = explained_import(error)
    return "; ".join(found) if found else None


def explained_import(error: BaseException) -> tuple[str, str] | None:
    """What cannot be imported and why, and the fix; None for other errors."""
    codes = (frame.f_code for frame, _ in walk_tb(error.__traceback__))
    files = (code.co_filename for code in codes if code.co_name == "<module>")
    if found := [each for each in map(_package, files) if each]:
        name, folder, file = found[-1]
        line = f"{name} cannot be imported: {file}: {_cause(error)}{_built_for(folder / name)}"
        return line, _fix(name, folder)
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0]
        if name != OWN:
            return f"{name} is not installed", f"{sys.executable} -m pip install {name}"
    return None


def from_pythonpath() -> dict[str, str]:
    """Imported packages -> the folder of PYTHONPATH from which they come; without this package."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        placed = _package(file) if file and "." not in name else None
        if placed and str(placed[1]) in _pythonpath():
            found[name] = str(placed[1])
    return found


def _package(file: str) -> tuple[str, Path, str] | None:
    """Name, folder and file of a module that belongs neither to Python nor to this package."""
    entries = [entry for entry in sys.path if entry and Path(file).is_relative_to(entry)]
    folder = max(entries, key=len, default="")
    if not folder or folder == sysconfig.get_path("stdlib"):
        return None
    name = Path(file).relative_to(folder).parts[0].removesuffix(".py")
    return None if name in (OWN, "lib-dynload") else (name, Path(folder), file)


def _cause(error: BaseException) -> str:
    """The first line of the error that caused the others."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
    return kind + (lines[0] if lines else "no reason given")


def _built_for(package: Path) -> str:
    """The versions of Python for which the compiled modules of a package are, if not for this."""
    tags = {found.groups() for path in _compiled(package) if (found := TAG.search(path.name))}
    this = tuple(map(str, sys.version_info[:2]))
    if not tags or this in tags:
        return ""
    versions = ", ".join(".".join(tag) for tag in sorted(tags))
    return f" (it is for Python {versions}, not for {'.'.join(this)})"


def _compiled(package: Path) -> Iterator[Path]:
    return package.rglob("*.so") if package.is_dir() else iter(())


def _fix(name: str, folder: Path) -> str:
    foreign = from_pythonpath() | ({name: str(folder)} if str(folder) in _pythonpath() else {})
    if not foreign:
        return f"install it again: {sys.executable} -m pip install --force-reinstall {name}"
    places = ", ".join(dict.fromkeys(foreign.values()))
    return (
        f"PYTHONPATH takes {', '.join(sorted(foreign))} from {places}: unset PYTHONPATH, or remove "
        "this folder from it"
    )


def _pythonpath() -> set[str]:
    """The folders of PYTHONPATH, besides those where pip installs."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {os.path.abspath(entry) for entry in given if entry} - INSTALLED

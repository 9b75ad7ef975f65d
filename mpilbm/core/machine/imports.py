"""Explains why a package cannot be imported: which file, from which folder, and the fix."""

import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb

INSTALLED = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
OWN = Path(__file__).parents[2].name
TAG = re.compile(r"\.cpython-(\d)(\d+)-")  # of compiled modules, for one version of Python


def problem(error: BaseException) -> str | None:
    """A line about a package of others that cannot be imported; None for other errors."""
    found = explained(error)
    return "; ".join(found) if found else None


def explained(error: BaseException) -> tuple[str, str] | None:
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

"""The cases that come with the package, and the files that each of them reads."""

import difflib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mpilbm.core.errors import CommandError

FOLDER = Path(__file__).with_name("cases")
BUILT_IN = "cavity"  # the commented case of template.py


@cache
def titles() -> dict[str, str]:
    """{name: title} of all cases that `mpilbm new --template` writes; the commented one first."""
    found = {BUILT_IN: "Lid-driven cavity, Re = 100; a comment for each key; 2D or 3D"}
    for path in sorted(FOLDER.glob("*.toml")):
        found[path.stem] = tomllib.loads(path.read_text(encoding="utf-8"))["title"]
    return found


def listing() -> list[str]:
    """A line for each case: its name and title."""
    width = max(map(len, titles()))
    return [f"{name:<{width}}  {title}" for name, title in titles().items()]


def text(name: str) -> str:
    """The text of a case; CommandError with the nearest name if there is no such case."""
    if name not in titles():
        near = difflib.get_close_matches(name, titles(), 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else "; `mpilbm new --list` describes them"
        raise CommandError(
            f"--template {name}: there is no such case; allowed: {', '.join(titles())}{hint}"
        )
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def inputs(text: str) -> list[Path]:
    """The paths of files in a case, relative to its folder, such as masks and tables of values.

    Every text in the case that is the name of an existing file, or a file name with a dataset.
    """
    texts = dict.fromkeys(each.partition(":")[0] for each in _texts(tomllib.loads(text)))
    paths = [Path(each) for each in texts if each and len(each) < 200]
    return [path for path in paths if not path.is_absolute() and (FOLDER / path).is_file()]


def missing(text: str) -> list[str]:
    """The files of bodies that do not come with a case; its comment states how to make them."""
    names = [name.partition(":")[0] for name in _files(tomllib.loads(text).get("body", []))]
    return [name for name in dict.fromkeys(names) if not (FOLDER / name).is_file()]


def _files(part: Any) -> Iterator[str]:
    """The masks and files of bodies and of their shapes."""
    for key, each in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(each, dict | list):
            yield from _files(each)
        elif key in ("mask", "file"):
            yield each


def _texts(part: Any) -> Iterator[str]:
    """All texts in a table."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _texts(each)

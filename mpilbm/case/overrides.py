"""`--set a.1.b=value`: keys of a case given on the command line."""

import copy
import tomllib
from collections.abc import Sequence


def override(tables: dict, settings: Sequence[str]) -> tuple[dict, list[str]]:
    """A copy of the tables with the settings applied in order, and what is wrong with them.

    A list entry goes by its index from 0, or by the label of its table; the index after the last
    appends. Missing tables are made.
    """
    tables, problems = copy.deepcopy(tables), []
    for setting in settings:
        try:
            path, equals, text = setting.partition("=")
            if not equals or not path.strip():
                raise ValueError("is not key=value; write for example --set run.steps=100")
            _set(tables, path.strip().split("."), _value(text))
        except ValueError as error:
            problems.append(f"--set {setting}: {error}")
    return tables, problems


def _value(text: str):
    """The text as TOML, or as a plain string if it is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the value is not UTF-8") from None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _set(tables: dict, parts: list[str], value) -> None:
    """Walk to the table or list that holds the last part, making what is missing."""
    here = tables
    for depth, part in enumerate(parts):
        last = depth + 1 == len(parts)
        made = [] if not last and parts[depth + 1].isdigit() else {}
        if not part:
            raise ValueError("a part of the path is empty; write a.b.c=value")
        if isinstance(here, list):
            part = _index(here, part, ".".join(parts[:depth]))
            if part == len(here):
                here.append(made)
        elif not isinstance(here, dict):
            found = ".".join(parts[:depth])
            raise ValueError(f"'{found}' is {here!r}, not a table or list; set '{found}' itself")
        if last:
            here[part] = value
        else:
            here = here.setdefault(part, made) if isinstance(here, dict) else here[part]


def _index(entries: list, part: str, path: str) -> int:
    """The place of a list entry: a number up to the length of the list, or a label in it."""
    labels = [entry.get("label") if isinstance(entry, dict) else None for entry in entries]
    if part in labels:
        return labels.index(part)
    if not part.isdecimal() or not part.isascii() or int(part) > len(entries):
        count = len(entries)
        named = "".join(f", '{label}'" for label in labels if label)
        have = f"0 to {count - 1}" if count > 1 else "0" if count else "none yet"
        raise ValueError(
            f"'{path}' has no entry '{part}'; allowed: {have}{named}; {count} appends one"
        )
    return int(part)

"""`--set a.1.b=value`: values of keys given on the command line or by a Python program."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any


def override(tables: dict, settings: Sequence[str] | Mapping[str, Any]) -> tuple[dict, list[str]]:
    """A copy of the tables with the settings applied in order, and the problems of the settings.

    `settings`: texts `key.path=value`, or {"key.path": value}.

    An entry of a list is named by its index from 0 or by its label; the index after the last one
    appends an entry. Missing tables are created.
    """
    tables, problems = _copied(tables), list[str]()
    lead = "override" if isinstance(settings, Mapping) else "--set"
    for setting in settings:
        try:
            if not isinstance(setting, str):
                raise ValueError("is not a text; write the key path as 'run.steps'")
            if isinstance(settings, Mapping):
                path, value = setting, settings[setting]
            else:
                path, equals, text = setting.partition("=")
                if not equals or not path.strip():
                    raise ValueError("is not key=value; write for example --set run.steps=100")
                value = _value(text)
            _set(tables, path.strip().split("."), value)
        except ValueError as error:
            problems.append(f"{lead} {setting}: {error}")
    return tables, problems


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


def _value(text: str) -> Any:
    """The value of a TOML text; the text itself if it is not TOML."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the value is not UTF-8") from None
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _set(tables: dict, parts: list[str], value: Any) -> None:
    """Set a value in the table or list at the path `parts`; creates missing tables and lists."""
    here: Any = tables
    for depth, part in enumerate(parts):
        last = depth + 1 == len(parts)
        new: list | dict = [] if not last and parts[depth + 1].isdigit() else {}
        key: str | int = part
        if not part:
            raise ValueError("a part of the path is empty; write a.b.c=value")
        if isinstance(here, list):
            key = _index(here, part, ".".join(parts[:depth]))
            if key == len(here):
                here.append(new)
        elif not isinstance(here, dict):
            found = ".".join(parts[:depth])
            raise ValueError(f"'{found}' is {here!r}, not a table or list; set '{found}' itself")
        if last:
            here[key] = value
        else:
            here = here.setdefault(key, new) if isinstance(here, dict) else here[key]


def _index(entries: list, part: str, path: str) -> int:
    """The index of an entry, named by its index (up to the length of the list) or its label."""
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

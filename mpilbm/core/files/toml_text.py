"""Writes TOML: tables, arrays of tables, and inline values in them."""

import json
import re
from typing import Any


def dumps(tables: dict) -> str:
    """TOML text from which tomllib reads equal tables; tables in tables are written inline."""
    plain = {key: value for key, value in tables.items() if not _is_section(value)}
    parts = [_lines(plain)] if plain else []
    for key, value in tables.items():
        if isinstance(value, dict):
            parts.append(f"[{_key(key)}]\n{_lines(value)}")
        elif _is_section(value):
            parts += [f"[[{_key(key)}]]\n{_lines(table)}" for table in value]
    return "\n".join(parts)


def inline(value: Any) -> str:
    """One value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {inline(item)}' for key, item in value.items())}}}"
    return value.isoformat()  # dates and times


def shown(value: Any) -> str:
    """One value for a message, shortened if it is long."""
    text = inline(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _is_section(value: Any) -> bool:
    """Whether it is a table, or a list of tables that is not empty."""
    tables = value if isinstance(value, list) else [value]
    return bool(tables) and all(isinstance(table, dict) for table in tables)


def _lines(table: dict) -> str:
    return "".join(f"{_key(key)} = {inline(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else inline(key)

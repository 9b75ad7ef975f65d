"""Values and texts for the user: TOML, and control characters as escapes."""

import json
import re
from typing import Any

MOST = 2000  # characters of a line
END = 500  # of these at the end of a shortened line, where messages name the fix

# Control characters (C0, delete, C1), line and paragraph separators, bidirectional and invisible
# format characters, surrogates (bytes that are not UTF-8), and tags.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def one_line(text: object, most: int = MOST) -> str:
    """The text on one line, without characters that move the cursor or reorder other characters.

    Each of these, line breaks included, becomes an escape such as \\x1b. The middle of a text with
    more than `most` characters is left out.
    """
    shown = str(text)
    if len(shown) > most:
        end = min(END, most // 4)
        shown = f"{shown[: most - end - 1]}…{shown[len(shown) - end :]}"
    return _UNSAFE.sub(_escape, shown)


def several_lines(text: str) -> str:
    """Like one_line for a text of several lines: line breaks and tabs are kept."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in "\n\t" else _escape(found), text)


def _escape(found: re.Match) -> str:
    return found[0].encode("unicode_escape").decode()


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

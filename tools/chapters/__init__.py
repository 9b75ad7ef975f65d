"""The chapters of the manual that `tools/manual` generates, and the anchors of sections."""

import re
import unicodedata

from mpilbm.view.manual.pages import FENCE, plain

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.M)


def without_code(text: str) -> str:
    """The text with its fenced code blocks made empty, line by line."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def slug(title: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it."""
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def anchors(text: str) -> list[str]:
    """Names of the sections, as the pages in HTML call them: repeated ones with _1, _2, …"""
    found: list[str] = []
    for match in _HEADING.finditer(without_code(text)):
        base = name = slug(plain(match[2]))
        number = 0
        while name in found:
            name = f"{base}_{(number := number + 1)}"
        found.append(name)
    return found

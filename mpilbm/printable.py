"""Text that is safe to print: control characters of names, titles and labels become escapes."""

import re

MOST = 2000  # characters of a line
END = 500  # of these at the end of a shortened line, where messages name the fix

# Controls (C0, delete, C1), line and paragraph separators, bidirectional and invisible format
# characters, surrogates of bytes that are no UTF-8, and tags.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def one_line(text, most: int = MOST) -> str:
    """The text without characters that move the cursor or change the order of others.

    Each becomes an escape like \\x1b, line breaks too; a longer text loses its middle.
    """
    text = str(text)
    if len(text) > most:
        end = min(END, most // 4)
        text = f"{text[: most - end - 1]}…{text[len(text) - end :]}"
    return _UNSAFE.sub(_escape, text)


def several_lines(text: str) -> str:
    """The same for a text of several lines: line breaks and tabs stay."""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in "\n\t" else _escape(found), text)


def _escape(found: re.Match) -> str:
    return found[0].encode("unicode_escape").decode()

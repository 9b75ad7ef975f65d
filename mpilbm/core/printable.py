"""Text that is safe to print: control characters in names, titles and labels become escapes."""

import re

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

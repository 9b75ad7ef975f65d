"""JSON files that end with a checksum of their content, under the key `crc32`."""

import json
import zlib
from typing import Any

KEY = "crc32"


class DamagedJsonError(ValueError):
    """The content of a file differs from that written."""


def sealed(content: dict[str, Any]) -> str:
    """The text of a file with this content and its checksum."""
    return _text({**content, KEY: _checksum(content)})


def unsealed(text: str, verify: bool = True) -> dict[str, Any]:
    """The content of a file without its checksum; `verify`: compare them, if it has one.

    Raises DamagedJsonError, or ValueError if the text is no JSON with keys and values.
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is no table of keys and values")
    known = content.pop(KEY, None)
    if verify and known not in (None, _checksum(content)):
        raise DamagedJsonError("its checksum is wrong")
    return content


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"


def _checksum(content: dict[str, Any]) -> str:
    return f"{zlib.crc32(_text(content).encode()):08x}"

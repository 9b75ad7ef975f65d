"""What this process does at present, for the lines about slow stages of a start."""

from collections.abc import Iterator
from contextlib import contextmanager

_begun: list[str] = []


@contextmanager
def activity(what: str) -> Iterator[None]:
    """Names what its body does, in a few words: "testing the C compiler gcc"."""
    _begun.append(what)
    try:
        yield
    finally:
        _begun.pop()


def present() -> str:
    """The innermost activity, which may be read by another thread; "" without one."""
    return next(iter(_begun[-1:]), "")

"""Findings: settings of a case that are allowed, but probably not intended."""

from collections.abc import Iterable
from dataclasses import dataclass

SERIOUS, WARNING, NOTE = SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One of SEVERITIES, the key of the case that it concerns, and a sentence.

    serious: the result is wrong or missing. warning: it may be inaccurate, or the run unstable.
    note: how the program treats such input.
    """

    severity: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    @property
    def line(self) -> str:
        """The line printed by `check` and `run`."""
        return f"{self.severity}: {self}"


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without duplicates, the most serious first, otherwise in the given order."""
    return sorted(dict.fromkeys(findings), key=lambda found: SEVERITIES.index(found.severity))

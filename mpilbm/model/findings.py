"""Findings: settings of a case that are allowed, but probably not intended."""

from collections.abc import Iterable
from dataclasses import dataclass

SERIOUS, WARNING, NOTE = SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A finding about a case.

    severity  "serious": the result is wrong or missing; "warning": the result may be inaccurate or
              the run unstable; "note": the way in which the program treats the input
    where     the key of the case that the finding concerns
    message   a sentence
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


def either(*changes: str) -> str:
    """The changes of a case that a finding advises, as "a, b, or c".

    Empty texts are left out: the caller passes "" in place of a change that the case already has.
    """
    *first, last = filter(None, changes)
    return f"{', '.join(first)}{',' if len(first) > 1 else ''} or {last}" if first else last


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without duplicates, most serious first, otherwise in the given order."""
    return sorted(dict.fromkeys(findings), key=lambda found: SEVERITIES.index(found.severity))

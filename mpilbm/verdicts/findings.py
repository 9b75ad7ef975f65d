"""Findings: what a case may do, but probably should not, the most serious first."""

from dataclasses import dataclass

SERIOUS, WARNING, NOTE = SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A severity of SEVERITIES, the key of the case that it concerns, and a sentence.

    serious: the result is wrong or missing; warning: it may be inaccurate or unstable; note: what
    the program does with such input.
    """

    severity: str
    where: str
    message: str

    def __str__(self):
        return f"{self.where}: {self.message}" if self.where else self.message

    @property
    def line(self) -> str:
        """The line that `check` and `run` print."""
        return f"{self.severity}: {self}"


def in_order(findings) -> list[Finding]:
    """The findings without duplicates, the most serious first, else in the order given."""
    return sorted(dict.fromkeys(findings), key=lambda found: SEVERITIES.index(found.severity))

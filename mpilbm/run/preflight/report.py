"""The report of `mpilbm check`: lines in sections, findings and problems, and their printing."""

from collections import Counter
from dataclasses import dataclass, field

from mpilbm.core.printable import one_line
from mpilbm.core.units import counted
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding

COLOURS = {"good": "green", "fair": "yellow", "poor": "red", "": ""}
SEVERITIES = {SERIOUS: "red", WARNING: "yellow", NOTE: ""}


@dataclass(frozen=True)
class Line:
    """A quantity, its value and a verdict; `level` is good, fair, poor or empty."""

    what: str
    value: str
    verdict: str = ""
    level: str = ""


@dataclass
class Report:
    """Lines by section, findings, and the `problems` that would stop the run."""

    title: str
    sections: dict[str, list[Line]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether the case would run."""
        return not self.problems

    @property
    def conclusion(self) -> str:
        """The last line: whether the case would run, and the numbers of findings."""
        if not self.runs:
            return "it would not run"
        if not self.findings:
            return "it would run"
        numbers = Counter(found.severity for found in self.findings)
        each = ", ".join(f"{numbers[name]} {name}" for name in SEVERITIES if numbers[name])
        return f"valid; {counted(len(self.findings), 'finding')} above: {each}"


def show(report: Report) -> None:
    """Print the report, in colours on a terminal; names in the case are not taken as markup."""
    from rich.console import Console
    from rich.table import Table

    width = None if Console().is_terminal else 200
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    console.print(one_line(report.title), style="bold")
    for title, lines in report.sections.items():
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for line in lines:
            cells = map(one_line, (f"  {line.what}", line.value, line.verdict))
            table.add_row(*cells, style=COLOURS[line.level])
        console.print(one_line(title), style="bold")
        console.print(table)
    for found in report.findings:
        console.print(one_line(found.line), style=SEVERITIES[found.severity])
    for text in report.problems:
        console.print(one_line(f"problem: {text}"), style="red")
    console.print(report.conclusion, style="bold")

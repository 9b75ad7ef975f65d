"""`mpilbm precision`: runs the variants, and prints one table and a recommendation."""

import shlex
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpilbm.case.case import load_case
from mpilbm.core.printable import one_line
from mpilbm.core.units import counted, in_words
from mpilbm.parallel.agree import on_root
from mpilbm.parallel.communicator import Communicator
from mpilbm.run.progress import say
from mpilbm.view.bench.table import facts, require_place, write_json
from mpilbm.view.comparison.compare import Comparison
from mpilbm.view.comparison.recommendation import Row, name, recommend
from mpilbm.view.comparison.variants import kinds, variants

HEAD = ("layout", "collision", "compute", "storage")
DEFINITIONS = (
    "Deviations from float64 at the last step, relative to values of the float64 run. u: to the "
    "rms velocity; rho: to the standard deviation of rho or the dynamic pressure, whichever is "
    "larger; other fields: to their standard deviation; forces: to their rms, over the second half "
    "of the steps; mass, energy: to their sums; momentum: to mass times rms velocity."
)


def precision(
    comm: Communicator,
    path: Path,
    overrides: Sequence[str],
    compare: str,
    steps: int | None,
    tolerance: float,
    file: Path | None,
) -> None:
    """Compare, print and write; exit code 2 if no variant could run. Collective."""
    chosen = kinds(compare)
    require_place(file)
    tables = tomllib.loads(load_case(path, overrides).toml)
    known = facts(comm, shlex.join(["mpilbm", *sys.argv[1:]]))
    found = Comparison(tables, path, comm, steps)
    say(comm, f"float64 reference: {counted(found.steps, 'step')} of {found.last:,}")
    rows = []
    for kind in chosen:
        for variant in variants(found.short, kind):
            rows.append(row := found.row(variant))
            result = row.get("problem") or "{glups:.3g} GLUPS".format(**row)
            say(comm, f"{kind} {name(row)}: {result}")
    part = found.steps / found.last
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in chosen}
    advice = [
        line for kind, own in by_kind.items() for line in recommend(kind, own, tolerance, part)
    ]
    known |= {
        "case": str(path),
        "device": found.device,
        "steps": found.steps,
        "steps_of_the_case": found.last,
        "tolerance": tolerance,
        "reference": found.reference_row,
        "rows": rows,
        "recommendation": advice,
    }
    on_root(comm, _deliver, known, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


def _deliver(known: dict[str, Any], file: Path | None) -> None:
    _show(known)
    if file:
        write_json(known, file)


def _show(known: dict[str, Any]) -> None:
    """Print the table, notes, rows with problems, and the recommendation."""
    from rich.console import Console
    from rich.table import Table

    width = None if Console().is_terminal else 200
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    measured = _distinct(row for row in known["rows"] if "problem" not in row)
    if measured:
        columns = list(dict.fromkeys(key for row in measured for key in row["end"]))
        small = all(row["glups"] < 1 for row in measured)
        unit, factor = ("MLUPS", 1e3) if small else ("GLUPS", 1)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for head in (*HEAD, unit, "memory", *columns):
            table.add_column(head, justify="left" if head in HEAD else "right")
        for row in measured:
            figures = f"{row['glups'] * factor:.3g}", in_words(row["bytes"])
            errors = (_digits(row["end"].get(column)) for column in columns)
            table.add_row(*(row[key] for key in HEAD), *figures, *errors,
                          style="bold" if row["own"] else "")  # fmt: skip
        console.print(table)
        console.print()
    facts = "{date}, {device}; mpilbm {mpilbm}; `{command}`".format(**known)
    many = f"{counted(known['steps'], 'step')} of {known['steps_of_the_case']:,}"
    console.print(one_line(f"{facts}; {many}"))
    console.print(DEFINITIONS)
    for row in known["rows"]:
        if "problem" in row:
            console.print(one_line(f"{row['kind']} {name(row)}: {row['problem']}"))
    for line in known["recommendation"]:
        console.print(one_line(line), style="bold")


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """The rows without repetitions of the case itself, which is a variant of each kind."""
    return list({tuple(row[key] for key in HEAD): row for row in rows}.values())


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"

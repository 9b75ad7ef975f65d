"""`mpilbm precision`: runs the variants, and prints one table and a recommendation."""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpilbm.case.case import load_case
from mpilbm.core.errors import CommandError
from mpilbm.core.printable import one_line
from mpilbm.core.units import counted, in_words
from mpilbm.parallel import Communicator, on_root
from mpilbm.run.progress import say
from mpilbm.view.bench.comparison import COLLISION, KINDS, LAYOUT, Comparison
from mpilbm.view.bench.table import deliver, facts, require_place, speed_unit
from mpilbm.view.bench.variants import Row

ALIKE = 0.95  # share of the highest speed from which on the smaller memory decides
GROWTH = 1.5  # of the largest deviation over the second half of the steps; above, a warning
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
    chosen = list(dict.fromkeys(word.strip() for word in compare.split(",")))
    for word in chosen:
        if word not in KINDS:
            allowed = ", ".join(KINDS)
            raise CommandError(
                f"--compare: '{word}' cannot be compared; allowed: {allowed}, several with commas"
            )
    require_place(file)
    tables = tomllib.loads(load_case(path, overrides).toml)
    known = facts(comm)
    found = Comparison(tables, path, comm, steps)
    say(comm, f"float64 reference: {counted(found.steps, 'step')} of {found.last:,}")
    part, rows, advice = found.steps / found.last, [], []
    for kind in chosen:
        own = []
        for variant in found.variants(kind):
            own.append(row := found.row(variant))
            result = row.get("problem") or "{glups:.3g} GLUPS".format(**row)
            say(comm, f"{kind} {_name(row)}: {result}")
        rows += own
        advice += recommend(kind, own, tolerance, part)
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
    on_root(comm, _show, known, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


def _show(known: dict[str, Any], file: Path | None) -> None:
    """Print the table, notes, rows with problems, and the recommendation; write all as JSON."""
    from rich.console import Console
    from rich.table import Table

    width = None if Console().is_terminal else 200
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    # without repetitions of the case itself, which is a variant of each kind
    each = {tuple(row[key] for key in HEAD): row for row in known["rows"] if "problem" not in row}
    measured = list(each.values())
    if measured:
        columns = list(dict.fromkeys(key for row in measured for key in row["end"]))
        unit, factor = speed_unit(measured)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for head in (*HEAD, unit, "memory", *columns):
            table.add_column(head, justify="left" if head in HEAD else "right")
        for names, row in each.items():
            figures = f"{row['glups'] * factor:.3g}", in_words(row["bytes"])
            errors = [row["end"].get(column) for column in columns]
            texts = ["-" if error is None else f"{error:.1e}" for error in errors]
            table.add_row(*names, *figures, *texts, style="bold" if row["own"] else "")
        console.print(table)
        console.print()
    of = "{date}, {device}; mpilbm {mpilbm}; `{command}`".format(**known)
    many = f"{counted(known['steps'], 'step')} of {known['steps_of_the_case']:,}"
    console.print(one_line(f"{of}; {many}"))
    console.print(DEFINITIONS)
    for row in known["rows"]:
        if "problem" in row:
            console.print(one_line(f"{row['kind']} {_name(row)}: {row['problem']}"))
    for line in known["recommendation"]:
        console.print(one_line(line), style="bold")
    deliver([], known, file)


# ------------------------------------------------------------------------------ recommendation


def recommend(kind: str, rows: Sequence[Row], tolerance: float, part: float) -> list[str]:
    """Sentences; `part`: the steps that were run as a share of those of the case."""
    measured = [row for row in rows if "problem" not in row]
    if not measured:
        return [f"{kind}: nothing could be measured"]
    fastest = max(row["glups"] for row in measured)
    if kind == COLLISION:
        names = ", ".join(_name(row) for row in measured if row["glups"] >= ALIKE * fastest)
        return [
            "collision: no recommendation. The deviations are differences between models, not "
            "rounding errors: compare each model with a reference solution or on a finer grid. "
            f"Highest speed: {names}."
        ]
    accurate = [row for row in measured if _largest(row)[0] <= tolerance]
    if not accurate:
        best = min(measured, key=lambda row: _largest(row)[0])
        return [
            f"{kind}: no variant deviates from float64 by less than the tolerance {tolerance:g}; "
            f"the smallest deviation has {_name(best)} ({_deviation(best)})."
        ]
    top = max(row["glups"] for row in accurate)
    alike = [row for row in accurate if row["glups"] >= ALIKE * top]
    best = min(alike, key=lambda row: (row["bytes"], _largest(row)[0]))
    advice = [f"{kind}: use {_name(best)}. {_reason(best, accurate, measured, tolerance)}"]
    (half, _), (end, _) = _largest(best, "half"), _largest(best)
    if part < 1 and half and end / half >= GROWTH:
        advice.append(
            f"note: the largest deviation grew by a factor of {end / half:.2g} over the second "
            f"half of the steps, and these are {100 * part:.2g} % of the case; repeat with more "
            f"--steps if it may exceed the tolerance {tolerance:g} later."
        )
    return advice


def _reason(best: Row, accurate: Sequence[Row], measured: Sequence[Row], tolerance: float) -> str:
    """Why this row: compared with the case itself, and with faster ones that are less accurate."""
    text = f"It deviates from float64 by at most {_deviation(best)}; the tolerance is {tolerance:g}"
    own = next((row for row in measured if row["own"]), None)
    if own is best:
        text += ". No variant within the tolerance is clearly faster"
    elif own:
        speed, memory = (best[key] / own[key] for key in ("glups", "bytes"))
        text += f". Compared with {_name(own)} of the case: {speed:.2f} times the speed"
        text += f", {memory:.2f} times the memory"
    for row in measured:
        if row not in accurate and row["glups"] > best["glups"]:
            text += f". {_name(row)} is faster, but deviates by {_deviation(row)}"
    return text + "."


def _largest(row: Row, when: str = "end") -> tuple[float, str]:
    """The largest deviation of a row, and the name of the quantity; (0, "") if there is none."""
    found = [(value, name) for name, value in row[when].items() if value is not None]
    return max(found, default=(0.0, ""))


def _deviation(row: Row) -> str:
    value, quantity = _largest(row)
    return f"{value:.2g} ({quantity})" if quantity else "0"


def _name(row: Row) -> str:
    """The part in which the variants of this kind differ."""
    if row["kind"] in (LAYOUT, COLLISION):
        return row[row["kind"]]
    return f"{row['compute']}/{row['storage']}"

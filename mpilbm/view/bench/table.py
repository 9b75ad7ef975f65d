"""`mpilbm bench`: figures as a Markdown table, and as JSON with all data to repeat them."""

import json
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from os.path import isdir
from pathlib import Path
from typing import Any

import click
import numpy as np

from mpilbm import __version__
from mpilbm.backends import tuning
from mpilbm.core.errors import CommandError, FileSystemError
from mpilbm.core.units import counted
from mpilbm.parallel.agree import on_root
from mpilbm.parallel.communicator import Communicator
from mpilbm.storage.files import replaced, require_replaceable
from mpilbm.view.bench import startup as starts
from mpilbm.view.bench.variants import DEFAULTS, label, plan, size_text, with_present_names

HEAD = ("lattice", "collision", "layout", "precision", "setting", "size", "ranks")


def bench(
    comm: Communicator,
    case: Path | None,
    overrides: Sequence[str],
    options: dict[str, Any],
    startup: bool,
    file: Path | None,
) -> None:
    """Measure, print and write; exit code 2 if nothing could be measured. Collective.

    `options` are the other options of the command. Raises CommandError or CaseError before it
    measures.
    """
    require_place(file)
    known = facts(comm, shlex.join(["mpilbm", *sys.argv[1:]]))
    named = {option: options.pop(option) for option in (*DEFAULTS, "size")}
    named = with_present_names(comm, named)
    if startup:
        for option, value in {"CASE": case, **named}.items():
            if value and option in ("CASE", "size", "setting"):
                raise CommandError(f"--startup times its own small cavity; leave out {option}")
        rows = on_root(comm, starts.rows, plan(None, overrides, named, starts.DEFAULTS, **options))
        lines = start_ups(known, rows)
    else:
        rows = list(plan(case, overrides, named, **options).rows(comm))
        lines = speeds(known, rows)
    on_root(comm, deliver, known, rows, lines, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


def tune_again(comm: Communicator) -> None:
    """Delete the launch shapes that were measured on this machine. Collective."""
    on_root(comm, tuning.forget)


def deliver(
    known: dict[str, Any], rows: list[dict[str, Any]], lines: list[str], file: Path | None
) -> None:
    """Print the lines; write facts and rows as JSON."""
    click.echo("\n".join(lines))
    if file:
        write_json(known | {"rows": rows}, file)


def write_json(found: dict[str, Any], file: Path) -> None:
    """Write the results; FileSystemError if the file cannot be written."""
    try:
        with replaced(file) as out:
            out.write(json.dumps(found, indent=1) + "\n")
    except OSError as error:
        raise FileSystemError(
            f"{file}: {error.strerror}; the figures are printed above; choose another file"
        ) from error


def facts(comm: Communicator, command: str) -> dict[str, Any]:
    """Date, command, host and versions of a measurement."""
    launcher = f"mpirun -n {comm.size} " if comm.size > 1 else ""
    return {
        "date": date.today().isoformat(),
        "command": launcher + command,
        "mpilbm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "host": platform.node(),
        "ranks": comm.size,
    }


def markdown(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The measured rows; in MLUPS if all are below one GLUPS."""
    small = all(row["glups"] < 1 for row in rows)
    unit, factor = ("MLUPS", 1e3) if small else ("GLUPS", 1)
    columns = (unit, "min–max", "bytes per update", "achieved GB/s", "copy GB/s", "share",
               "host µs")  # fmt: skip

    def cells(row: dict[str, Any]) -> list[Any]:
        texts = [row[key] if key != "size" else size_text(row[key]) for key in HEAD]
        slowest, fastest = (_digits(each * factor) for each in row["spread"])
        bandwidths = (_digits(row[key] / 1e9) for key in ("achieved", "copy_bandwidth"))
        figures = (_digits(row["glups"] * factor), f"{slowest}–{fastest}", row["bytes_per_update"])
        host = _digits(1e6 * row["split"]["host"])
        return [*texts, *figures, *bandwidths, f"{row['share']:.2f}", host]

    return markdown((*HEAD, *columns), map(cells, rows))


def _digits(value: float) -> str:
    """Three digits, or all digits before the decimal point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def notes(known: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """The notes below a table of measured rows."""
    numbers = sorted({row["steps"] for row in rows})
    most = counted(numbers[-1], "step")
    steps = most if len(numbers) == 1 else f"{numbers[0]:,} to {most}"
    repeats = len(rows[0]["seconds"])
    ranks = f"{known['ranks']} ranks, the first on " if known["ranks"] > 1 else ""
    found = [
        f"{known['date']}, {ranks}{rows[0]['device']}; mpilbm {known['mpilbm']}; "
        f"`{known['command']}`",
        f"Median, slowest and fastest of {repeats} repeats of {steps} after a warm-up. "
        "Achieved: bytes per second that the updates read and write. Copy: bytes per second that a "
        "memory copy reads and writes, on all ranks at the same time, measured after each row. "
        "Share: achieved divided by copy. Host: time of a step in which the CPU prepares and "
        "launches work; the time in which it waits for the device is not included.",
    ]
    for row in rows:
        if row["fluid_cells"] < row["cells"]:
            part = row["fluid_cells"] / row["cells"]
            name = f"{row['setting']}, {size_text(row['size'])}"
            line = f"{name}: only updates of fluid cells count, {100 * part:.0f} % of the box."
            if line not in found:
                found.append(line)
    return found


def speeds(known: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """The lines to print: table and notes, then the variants that could not be measured."""
    measured = [row for row in rows if "problem" not in row]
    lines = [*table(measured), "", *notes(known, measured)] if measured else []
    return lines + [f"{label(row)}: {row['problem']}" for row in rows if "problem" in row]


def start_ups(known: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """The lines to print: seconds of starts with an empty and with a full kernel cache."""
    head = (*HEAD[:4], "cold s", "warm s")
    cells = [[*(row[key] for key in HEAD[:4]), *(f"{row[key]:.2f}" for key in ("cold", "warm"))]
             for row in rows]  # fmt: skip
    note = (
        f"{known['date']}, {rows[0]['device']}; mpilbm {known['mpilbm']}; `{known['command']}`",
        "Seconds of a process that runs one step in a small cavity. Cold: it generates and "
        "compiles all kernels. Warm: it finds them in the cache.",
    )
    return [*markdown(head, cells), "", *note]


def require_place(file: Path | None) -> None:
    """CommandError unless the file can be written; called before a long measurement."""
    if file and (isdir(file) or not isdir(file.absolute().parent)):
        place = "is a folder" if isdir(file) else f"there is no folder {file.parent}"
        raise CommandError(f"--json {file}: {place}; name a file in an existing folder")
    if file:
        require_replaceable(file)

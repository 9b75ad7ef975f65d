"""`mpilbm bench`: a Markdown table of measured figures, and JSON that holds all to repeat them."""

import json
import platform
import shlex
import sys
from datetime import date
from os.path import isdir
from pathlib import Path

import click
import numpy as np

from mpilbm import __version__
from mpilbm.backends import tuning
from mpilbm.bench import startup as starts
from mpilbm.bench.variants import USUAL, label, plan, size_text
from mpilbm.errors import CommandError, FileSystemError
from mpilbm.parallel.agree import on_root
from mpilbm.units import counted

HEAD = ("lattice", "collision", "layout", "precision", "setting", "size", "ranks")


def bench(comm, case, overrides, options: dict, startup: bool, file: Path | None) -> None:
    """Measure, print and write; exit code 2 if nothing could be measured. Collective.

    `options` are those of the command. Raises CommandError or CaseError before it measures.
    """
    require_place(file)
    known = facts(comm, shlex.join(["mpilbm", *sys.argv[1:]]))
    named = {option: options.pop(option) for option in (*USUAL, "size")}
    if startup:
        for option, value in {"CASE": case, **named}.items():
            if value and option in ("CASE", "size", "setting"):
                raise CommandError(f"--startup times a small cavity of its own; leave out {option}")
        rows = on_root(comm, starts.rows, plan(None, overrides, named, starts.USUAL, **options))
        lines = start_ups(known, rows)
    else:
        rows = list(plan(case, overrides, named, **options).rows(comm))
        lines = speeds(known, rows)
    on_root(comm, deliver, known, rows, lines, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


def tune_anew(comm) -> None:
    """Forget the launch shapes that were measured on this machine. Collective."""
    on_root(comm, tuning.forget)


def deliver(known: dict, rows: list[dict], lines: list[str], file: Path | None) -> None:
    """Print the lines; write facts and rows as JSON."""
    click.echo("\n".join(lines))
    if file:
        write_json(known | {"rows": rows}, file)


def write_json(found: dict, file: Path) -> None:
    """Write what was measured; FileSystemError if the file cannot be written."""
    try:
        file.write_text(json.dumps(found, indent=1) + "\n")
    except OSError as error:
        raise FileSystemError(
            f"{file}: {error.strerror}; the figures stand above, name another file for the next"
        ) from error


def facts(comm, command: str) -> dict:
    """When, with what and by which command something was measured."""
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


def markdown(head, rows) -> list[str]:
    """Lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def table(rows: list[dict]) -> list[str]:
    """The measured rows; in MLUPS where all are below one GLUPS."""
    small = all(row["glups"] < 1 for row in rows)
    unit, factor = ("MLUPS", 1e3) if small else ("GLUPS", 1)
    columns = (unit, "min–max", "bytes per update", "achieved GB/s", "copy GB/s", "share",
               "host µs")  # fmt: skip

    def cells(row):
        texts = [row[key] if key != "size" else size_text(row[key]) for key in HEAD]
        slowest, fastest = (_digits(each * factor) for each in row["spread"])
        bandwidths = (_digits(row[key] / 1e9) for key in ("achieved", "copy_bandwidth"))
        figures = (_digits(row["glups"] * factor), f"{slowest}–{fastest}", row["bytes_per_update"])
        host = _digits(1e6 * row["split"]["host"])
        return [*texts, *figures, *bandwidths, f"{row['share']:.2f}", host]

    return markdown((*HEAD, *columns), map(cells, rows))


def _digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def notes(known: dict, rows: list[dict]) -> list[str]:
    """What a table of measured rows must be read with."""
    steps = sorted({row["steps"] for row in rows})
    most = counted(steps[-1], "step")
    steps = most if len(steps) == 1 else f"{steps[0]:,} to {most}"
    repeats = len(rows[0]["seconds"])
    ranks = f"{known['ranks']} ranks, the first on " if known["ranks"] > 1 else ""
    found = [
        f"{known['date']}, {ranks}{rows[0]['device']}; mpilbm {known['mpilbm']}; "
        f"`{known['command']}`",
        f"Median, slowest and fastest of {repeats} repeats of {steps} after a warm-up. "
        "Share: bytes that the updates must move, over what a copy by all ranks at once moves "
        "(reads and writes), measured after each row. Host: its work in a step, waiting left out.",
    ]
    for row in rows:
        if row["fluid_cells"] < row["cells"]:
            part = row["fluid_cells"] / row["cells"]
            name = f"{row['setting']}, {size_text(row['size'])}"
            line = f"{name}: updates of fluid cells count, {100 * part:.0f} % of the box."
            if line not in found:
                found.append(line)
    return found


def speeds(known: dict, rows: list[dict]) -> list[str]:
    """Lines to print: the table of what was measured and its notes, then what could not be."""
    measured = [row for row in rows if "problem" not in row]
    lines = [*table(measured), "", *notes(known, measured)] if measured else []
    return lines + [f"{label(row)}: {row['problem']}" for row in rows if "problem" in row]


def start_ups(known: dict, rows: list[dict]) -> list[str]:
    """Lines to print: seconds of starts with an empty cache and from the cache."""
    head = (*HEAD[:4], "cold s", "warm s")
    cells = [[*(row[key] for key in HEAD[:4]), *(f"{row[key]:.2f}" for key in ("cold", "warm"))]
             for row in rows]  # fmt: skip
    note = (
        f"{known['date']}, {rows[0]['device']}; mpilbm {known['mpilbm']}; `{known['command']}`",
        "Seconds of a whole process that runs one step in a small cavity: cold generates and "
        "compiles all kernels, warm finds them in the cache.",
    )
    return [*markdown(head, cells), "", *note]


def require_place(file: Path | None) -> None:
    """CommandError unless the file can lie there: to be known before a long measurement."""
    if file and (isdir(file) or not isdir(file.absolute().parent)):
        place = "is a folder" if isdir(file) else f"there is no folder {file.parent}"
        raise CommandError(f"--json {file}: {place}; name a file in a folder that is there")

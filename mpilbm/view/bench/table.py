"""`mpilbm bench`: figures as a Markdown table, and as JSON with all data to repeat them."""

import json
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from os.path import isdir
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click
import numpy as np

from mpilbm import __version__
from mpilbm.core import machine, printable
from mpilbm.core.errors import CommandError, FileSystemError, MpilbmError
from mpilbm.core.units import counted
from mpilbm.parallel import Communicator, on_root
from mpilbm.parallel.launcher import without_launcher
from mpilbm.storage import replaced, require_replaceable
from mpilbm.storage.directory import SUMMARY
from mpilbm.view.bench import SINGLE
from mpilbm.view.bench.variants import (
    Row,
    Series,
    dimensions,
    label,
    plan,
    size_text,
)

HEAD = ("lattice", "collision", "layout", "precision", "setting", "size", "ranks")
STARTUP = {
    "lattice": "D2Q9,D3Q19",
    "collision": "bgk,trt",
    "layout": "ab",
    "precision": SINGLE,
    "setting": "cavity",
}
STARTUP_SIDE = 16  # cells
WARM_STARTS = 3


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
    known = facts(comm)
    if startup:
        for option in ("CASE", "setting", "size"):
            if (options | {"CASE": case})[option]:
                raise CommandError(f"--startup times its own small cavity; leave out {option}")
        rows = on_root(comm, _start_ups, plan(comm, None, overrides, options, STARTUP))
        lines = _start_up_lines(known, rows)
    else:
        rows = list(plan(comm, case, overrides, options).rows(comm))
        measured = [row for row in rows if "problem" not in row]
        lines = [*_table(measured), "", *_notes(known, measured)] if measured else []
        lines += problems(rows)
    on_root(comm, deliver, lines, known | {"rows": rows}, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


# ------------------------------------------------------------------------------- every report


def facts(comm: Communicator, command: str = "") -> dict[str, Any]:
    """Date, command (by default that of this process), host and versions of a measurement."""
    launcher = f"mpirun -n {comm.size} " if comm.size > 1 else ""
    return {
        "date": date.today().isoformat(),
        "command": launcher + (command or shlex.join(["mpilbm", *sys.argv[1:]])),
        "mpilbm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "host": platform.node(),
        "ranks": comm.size,
    }


def require_place(file: Path | None) -> None:
    """CommandError unless the file can be written; called before a long measurement."""
    if file and (isdir(file) or not isdir(file.absolute().parent)):
        place = "is a folder" if isdir(file) else f"there is no folder {file.parent}"
        raise CommandError(f"--json {file}: {place}; name a file in an existing folder")
    if file:
        require_replaceable(file)


def deliver(lines: Iterable[str], found: dict[str, Any], file: Path | None) -> None:
    """Print the lines, then write the figures as JSON: a full disk does not lose the table."""
    for line in lines:
        click.echo(line)
    if file is None:
        return
    try:
        with replaced(file) as out:
            out.write(json.dumps(found, indent=1) + "\n")
    except OSError as error:
        raise FileSystemError(
            f"{file}: {error.strerror}; the figures are printed above; choose another file"
        ) from error


def markdown(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def names(row: Row) -> list[Any]:
    """The cells of a row below HEAD."""
    return [row[key] if key != "size" else size_text(row[key]) for key in HEAD]


def problems(rows: Iterable[Row]) -> list[str]:
    """A line for each variant that could not be measured."""
    return [f"{label(row)}: {row['problem']}" for row in rows if "problem" in row]


def speed_unit(rows: Iterable[Row]) -> tuple[str, float]:
    """The unit of the speeds, and its factor: MLUPS if all are below one GLUPS."""
    return ("MLUPS", 1e3) if all(row["glups"] < 1 for row in rows) else ("GLUPS", 1)


def digits(value: float) -> str:
    """Three digits, or all digits before the decimal point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


# ------------------------------------------------------------------------------------- speeds


def _table(rows: list[Row]) -> list[str]:
    unit, factor = speed_unit(rows)
    columns = "min–max", "bytes per update", "achieved GB/s", "copy GB/s", "share", "host µs"

    def cells(row: Row) -> list[Any]:
        slowest, fastest = (digits(each * factor) for each in row["spread"])
        bandwidths = (digits(row[key] / 1e9) for key in ("achieved", "copy_bandwidth"))
        figures = digits(row["glups"] * factor), f"{slowest}–{fastest}", row["bytes_per_update"]
        host = digits(1e6 * row["split"]["host"])
        return [*names(row), *figures, *bandwidths, f"{row['share']:.2f}", host]

    return markdown((*HEAD, unit, *columns), map(cells, rows))


def _notes(known: dict[str, Any], rows: list[Row]) -> list[str]:
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
    porous = (
        f"{row['setting']}, {size_text(row['size'])}: only updates of fluid cells count, "
        f"{100 * row['fluid_cells'] / row['cells']:.0f} % of the box."
        for row in rows
        if row["fluid_cells"] < row["cells"]
    )
    return [*found, *dict.fromkeys(porous)]


# ---------------------------------------------------------------------------------- start-up


def _start_ups(series: Series) -> list[Row]:
    """A row for each variant, with the results of `starts`."""
    return [
        variant._asdict() | starts(series.tables(variant, (STARTUP_SIDE,) * dimensions(variant)))
        for variant in series.variants
    ]


def starts(tables: dict[str, Any]) -> dict[str, Any]:
    """Seconds of processes that run a case from start to end.

    `cold` generates and compiles all kernels, `warm` is the median of WARM_STARTS processes that
    find them in the cache.
    """
    with TemporaryDirectory(prefix="mpilbm-") as folder:
        case = Path(folder, "box.toml")
        case.write_text(printable.dumps(tables), "utf-8")
        cold, *warm = (_seconds(case, folder) for _ in range(1 + WARM_STARTS))
        ran = json.loads(Path(folder, "out", SUMMARY).read_text("utf-8"))
    return {"cold": cold, "warm": median(warm), "device": ran["device"]}


def _seconds(case: Path, folder: str) -> float:
    """Seconds of a run in a new process with kernel cache in `folder`; MpilbmError if it fails."""
    caches = {"MPILBM_CACHE_DIR": f"{folder}/kernels", "CUPY_CACHE_DIR": f"{folder}/cupy"}
    words = ["run", str(case), "--output", f"{folder}/out", "--overwrite"]
    start = perf_counter()
    environment = machine.environment(without_launcher() | caches)
    done = machine.run(machine.module("mpilbm", *words), env=environment)
    taken = perf_counter() - start
    if done.returncode:
        words = done.stderr.strip().replace("mpilbm: error: ", "").splitlines()
        raise MpilbmError([f"a run to be timed ended with exit code {done.returncode}:", *words])
    return taken


def _start_up_lines(known: dict[str, Any], rows: list[Row]) -> list[str]:
    kinds, times = HEAD[:4], ("cold", "warm")
    cells = [[row[key] for key in kinds] + [f"{row[key]:.2f}" for key in times] for row in rows]
    return [
        *markdown((*kinds, *(f"{time} s" for time in times)), cells),
        "",
        f"{known['date']}, {rows[0]['device']}; mpilbm {known['mpilbm']}; `{known['command']}`",
        "Seconds of a process that runs one step in a small cavity. Cold: it generates and "
        "compiles all kernels. Warm: it finds them in the cache.",
    ]

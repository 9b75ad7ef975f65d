"""`mpilbm report`: a page from the JSON files of `mpilbm bench --weak` and `--strong`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from os.path import isdir
from pathlib import Path
from typing import Any

from mpilbm.bench.scaling import digits, percent
from mpilbm.bench.scaling_model import Model, model
from mpilbm.bench.scaling_plots import draw
from mpilbm.bench.table import markdown
from mpilbm.bench.variants import size_text
from mpilbm.errors import CommandError
from mpilbm.printable import one_line
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import whole
from mpilbm.system.input_text import NotATextFile, read_text
from mpilbm.units import counted

PAGE = "scaling.md"
NAMES = ("lattice", "collision", "layout", "precision", "setting")
MODELLED = (4, 16, 64, 256, 1024)  # ranks in the table of the model


@dataclass(frozen=True)
class Series:
    """Runs that differ only in the number of ranks, in ascending order."""

    kind: str
    name: str
    rows: list[dict[str, Any]]
    model: Model | None


def report(directory: Path, output: Path | None = None) -> list[Path]:
    """Write the page and its plots to `output`, by default the folder itself; returns the files.

    Raises CommandError if the folder does not exist, contains no results, or is not writable.
    """
    rows = read(directory)
    output = output or directory
    try:
        found = list(series(rows))
        make_folder(output)
        pictures = draw(found, output)
        with whole(output / PAGE) as page:
            page.write("\n".join(lines(found, rows, pictures)) + "\n")
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}; choose a folder with --output") from error
    except KeyError as error:
        raise CommandError(
            f"{directory}: a row lacks {error}, perhaps because another version wrote it; measure "
            "it again or remove its file"
        ) from error
    return [output / PAGE, *pictures]


def read(directory: Path) -> list[dict[str, Any]]:
    """The rows of all files of the folder that contain a scaling, with the facts of the run."""
    if not isdir(directory):
        raise CommandError(
            f"{directory}: no such folder; name a folder with JSON files of mpilbm bench"
        )
    rows = []
    for path in sorted(directory.glob("*.json")):
        try:
            known = json.loads(read_text(path))
        except (NotATextFile, OSError, ValueError, RecursionError) as error:
            raise CommandError(f"{path}: cannot be read as JSON ({error}); remove it") from error
        if isinstance(known, dict) and "scaling" in known:
            measured = known.pop("rows", [])
            rows += [known | row | {"file": path.name} for row in measured if "problem" not in row]
    if not rows:
        raise CommandError(
            f"{directory}: holds no measured *.json of mpilbm bench --weak or --strong; make one: "
            "mpirun -n 2 mpilbm bench --weak 256"
        )
    return rows


def series(rows: list[dict[str, Any]]) -> Iterator[Series]:
    """Rows grouped by box, device and halo; rows of one rank belong to all halos."""
    for (kind, name), found in groupby(sorted(rows, key=_key), _key):
        group = sorted(found, key=lambda row: (row["ranks"], row["time"]))
        halos = {row["halo"]["name"]: None for row in group if row["ranks"] > 1}
        for halo in halos or [None]:
            mine = [row for row in group if row["ranks"] == 1 or row["halo"]["name"] == halo]
            title = f"{name}, halo {safe(halo)}" if halo else name
            yield Series(kind, title, mine, model(kind, mine))


def _key(row: dict[str, Any]) -> tuple[str, str]:
    weak = row["scaling"] == "weak"
    size = [*row["size"][:-1], row["size"][-1] // row["ranks"]] if weak else row["size"]
    box = f"{size_text(size)} {'a rank' if weak else 'in all'}"
    device = row["device"].partition(" on ")[0]
    return row["scaling"], safe(f"{' '.join(row[key] for key in NAMES)}, {box}, {device}")


# ---------------------------------------------------------------------------------------- page


def lines(found: list[Series], rows: list[dict[str, Any]], pictures: list[Path]) -> list[str]:
    """The page, in Markdown."""
    page = ["# Scaling", "", *_runs(rows)]
    page += [line for path in pictures for line in ("", f"![{path.stem}]({path.name})")]
    for each in found:
        page += ["", f"## {each.kind.capitalize()}: {each.name}", "", *_speeds(each)]
        for table in (_splits, _throughput, _model):
            if made := table(each):
                page += ["", *made]
    return page


def safe(text: object) -> str:
    """Escape a text from a file for a table cell or heading of Markdown, which may contain HTML."""
    return escape(one_line(text, 200), quote=False).replace("|", r"\|")


def _runs(rows: list[dict[str, Any]]) -> list[str]:
    """The table of runs."""
    files = {row["file"]: row for row in rows}
    head = ("file", "ranks", "nodes", "date", "mpilbm", "MPI", "command")
    keys = ("ranks", "nodes", "date", "mpilbm", "mpi")
    cells = [
        [safe(text) for text in (name, *(row[key] for key in keys))]
        + [f"`{safe(row['command']).replace('`', '')}`"]
        for name, row in files.items()
    ]
    return markdown(head, cells)


def _speeds(each: Series) -> list[str]:
    """The table of GLUPS and efficiency, measured and of the model."""
    head = ("ranks", "nodes", "GLUPS", "min–max", "one rank alone", "efficiency", "halo hidden",
            "model GLUPS", "model efficiency")  # fmt: skip

    def cells(row: dict[str, Any]) -> list[Any]:
        """A row of the table."""
        n, slowest = row["ranks"], row.get(row["against"], {}).get("glups")
        known = each.model
        return [
            n, row["nodes"], f"{row['glups']:.4g}", "–".join(f"{g:.4g}" for g in row["spread"]),
            f"{min(slowest):.4g} ({_against(row)})" if slowest else "–",
            percent(row["efficiency"]), percent(row["halo"].get("hidden")),
            f"{known.glups(n):.4g}" if known else "–",
            percent(known.efficiency(n) if known else None),
        ]  # fmt: skip

    where = (
        "its share of the box"
        if each.kind == "weak"
        else "the whole box, or on its slab if the box does not fit"
    )
    note = (
        "Median of the repeats, times of the slowest rank. Efficiency: GLUPS divided by the number "
        "of ranks and by the GLUPS of the slowest rank by itself, measured in the same run on "
        f"{where}."
    )
    return [*markdown(head, map(cells, each.rows)), "", note]


def _against(row: dict[str, Any]) -> str:
    return "the box" if row["against"] == "whole" or row["ranks"] == 1 else "its slab"


def _splits(each: Series) -> list[str]:
    """The table of the parts of a step's time."""
    rows = [row for row in each.rows if row.get("split")]
    parts = ("edge", "bulk", "exchange", "host")
    head = ("ranks", "step, µs", "edge", "bulk", "visible exchange", "host, concurrent")
    cells = [
        [row["ranks"], digits(1e6 * step_seconds(row)),
         *(digits(1e6 * row['split'][part]) for part in parts)]
        for row in rows
    ]  # fmt: skip
    note = (
        "Parts of steps that were launched one by one, with events in between. With recorded and "
        "replayed steps (`nccl`, `cuda_ipc`) a step of a small box takes less than their sum."
    )
    return [*markdown(head, cells), "", note] if rows else []


def step_seconds(row: dict[str, Any]) -> float:
    """Seconds of a step, the median of the repeats."""
    return row["fluid_cells"] / row["glups"] / 1e9


def _throughput(each: Series) -> list[str]:
    """The bandwidth required at 100 % efficiency, and that of the link [Obrecht 2013, table 1]."""
    rows = [row for row in each.rows if row.get("link") and row["efficiency"]]
    head = ("ranks", "kernels, ms", "faces, MB", "required GB/s", "of a rank", "link GB/s",
            "required / link", "latency, µs")  # fmt: skip

    def cells(row: dict[str, Any]) -> list[Any]:
        """A row of the table."""
        kernels = step_seconds(row) * row["efficiency"]
        total, most = sum(row["halo"]["bytes"]), max(row["halo"]["bytes"])
        given = row["link"]["bandwidth"]
        return [
            row["ranks"], digits(1e3 * kernels), digits(total / 1e6),
            digits(total / kernels / 1e9), digits(most / kernels / 1e9), digits(given / 1e9),
            digits(most / kernels / given), digits(1e6 * row['link']['latency']),
        ]  # fmt: skip

    note = (
        "Kernels: time of a step at 100 % efficiency. Faces: bytes that all ranks send in a step; "
        "required: these bytes divided by the time of the kernels. Link: bytes per second sent by "
        "a rank that exchanges with both neighbours, all ranks at once, with the halo of the run."
    )
    return [*markdown(head, map(cells, rows)), "", note] if rows else []


def _model(each: Series) -> list[str]:
    """The numbers of the model, and its predictions for many ranks."""
    known = each.model
    if known is None:
        return []
    ranks = [n for n in MODELLED if n in known.ranks]
    values = [[f"{known.glups(n):.4g} ({percent(known.efficiency(n))})" for n in ranks]]
    row = max((row for row in each.rows if row.get("link")), key=lambda one: one["ranks"])
    note = (
        f"Model, GLUPS (efficiency): {known.bytes_per_update} B per update at "
        f"{digits(known.copy / 1e12)} TB/s (a copy), {digits(1e6 * known.overhead)} µs of "
        f"the host, {digits(known.face_bytes / 1e6)} MB a step to both neighbours at "
        f"{digits(known.bandwidth / 1e9)} GB/s after {digits(1e6 * known.latency)} µs. The link "
        f"was measured on {row['ranks']} ranks of {row['nodes']} node"
        + ("; on several nodes the network is slower." if row["nodes"] == 1 else "s.")
    )
    if not known.weak:
        note += f" The box has {known.planes} planes, which is the largest number of ranks."
    return [*markdown([counted(n, "rank") for n in ranks], values), "", note] if ranks else []

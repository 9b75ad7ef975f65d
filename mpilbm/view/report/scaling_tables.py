"""The tables of a series: speed and efficiency, parts of a step, the link, the model."""

from collections.abc import Sequence
from typing import NamedTuple

from mpilbm.core.units import counted
from mpilbm.view.bench.scaling import percent
from mpilbm.view.bench.table import digits
from mpilbm.view.report.scaling_series import Prediction, Row, Series, step_seconds

MODELLED = (2, 4, 8, 16, 64, 256, 1024)  # ranks in the table of the model


class Table(NamedTuple):
    """A heading, the names of the columns, cells as text, and what the columns mean."""

    title: str
    head: Sequence[str]
    rows: list[list[str]]
    note: str


def tables(each: Series) -> list[Table]:
    """The tables of a series that have rows."""
    made = (_speeds(each), _splits(each), throughput(each), predictions(each))
    return [table for table in made if table.rows]


def runs(rows: Sequence[Row]) -> Table:
    """The files and the commands that made them."""
    keys = ("file", "ranks", "nodes", "date", "mpilbm", "mpi", "command")
    files = {row["file"]: row for row in rows}
    cells = [[str(row[key]) for key in keys] for row in files.values()]
    return Table("Measurements", (*keys[:-2], "MPI", "command"), cells, "")


def _speeds(each: Series) -> Table:
    """GLUPS and efficiency, measured and of the model."""
    columns = "ranks", "nodes", "GLUPS", "min–max", "one rank alone", "efficiency", "halo hidden"

    def cells(row: Row) -> list[str]:
        n, slowest = row["ranks"], row.get(row["against"] or "", {}).get("glups")
        holds = each.model and n <= max(each.model.ranks, default=0)
        known = each.model.at(n) if each.model and holds else None
        against = "the box" if row["against"] == "whole" or n == 1 else "its slab"
        return [
            str(n),
            str(row["nodes"]),
            f"{row['glups']:.4g}",
            "–".join(f"{g:.4g}" for g in row["spread"]),
            f"{min(slowest):.4g} ({against})" if slowest else "–",
            percent(row["efficiency"]),
            percent(row["halo"].get("hidden")),
            f"{known.glups(n):.4g}" if known else "–",
            percent(known.efficiency(n) if known else None),
        ]

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
    head = (*columns, "model GLUPS", "model efficiency")
    return Table("Speed", head, list(map(cells, each.rows)), note)


def _splits(each: Series) -> Table:
    """The parts of a step's time."""
    head = ("ranks", "step, µs", "edge", "bulk", "visible exchange", "host, concurrent")
    cells = []
    for row in each.rows:
        if split := row.get("split"):
            times = step_seconds(row), *(split[x] for x in ("edge", "bulk", "exchange", "host"))
            cells.append([str(row["ranks"]), *(digits(1e6 * time) for time in times)])
    note = (
        "Parts of steps that were launched one by one, with events in between. With recorded and "
        "replayed steps (nccl, cuda_ipc) a step of a small box takes less than their sum."
    )
    return Table("Parts of a step", head, cells, note)


def throughput(each: Series) -> Table:
    """The bandwidth required at 100 % efficiency, and that of the link [Obrecht 2013, table 1]."""
    faces = "kernels, ms", "faces, MB", "required GB/s", "of a rank"
    link = "link GB/s", "required / link", "latency, µs"
    rows = []
    for row in each.rows:
        if row.get("link") and row["efficiency"]:
            kernels = step_seconds(row) * row["efficiency"]
            total, most = sum(row["halo"]["bytes"]), max(row["halo"]["bytes"])
            given, latency = row["link"]["bandwidth"], row["link"]["latency"]
            sent = 1e3 * kernels, total / 1e6, total / kernels / 1e9, most / kernels / 1e9
            numbers = *sent, given / 1e9, most / kernels / given, 1e6 * latency
            rows.append([str(row["ranks"]), *map(digits, numbers)])
    note = (
        "Kernels: time of a step at 100 % efficiency. Faces: bytes that all ranks send in a step; "
        "required: these bytes divided by the time of the kernels. Link: bytes per second sent by "
        "a rank that exchanges with both neighbours, all ranks at once, with the halo of the run."
    )
    return Table("Link", ("ranks", *faces, *link), rows, note)


def predictions(each: Series) -> Table:
    """The numbers of the model, and its predictions for many ranks."""
    known = each.model
    if known is None:
        return Table("Model", (), [], "")
    ranks = [n for n in MODELLED if n in known.ranks]
    models = [(known.at(n), n) for n in ranks]
    values = [[f"{at.glups(n):.4g} ({percent(at.efficiency(n))})" for at, n in models]]
    head = [counted(n, "rank") for n in ranks]
    return Table("Model", head, values if ranks else [], _numbers(each, known))


def _numbers(each: Series, known: Prediction) -> str:
    model, where = known.model, counted(known.nodes, "node")
    note = (
        f"GLUPS (efficiency) of the model: {model.bytes_per_update} B per update at "
        f"{digits(model.copy / 1e12)} TB/s (a copy), {digits(1e6 * model.overhead)} µs of "
        f"the host, {digits(model.face_bytes / 1e6)} MB a step to both neighbours at "
        f"{digits(model.bandwidth / 1e9)} GB/s after {digits(1e6 * model.latency)} µs. The link "
        f"was measured on {counted(known.measured, 'rank')} of {where}."
    )
    if known.nodes == 1 and known.network is None:
        note += " The network between nodes is not known: give it with --network 50GB/s,2us."
    elif known.nodes == 1 and known.network:
        bandwidth, latency = known.network
        note += (
            f" Beyond {counted(known.measured, 'rank')} a node sends {bandwidth / 1e9:.3g} GB/s "
            f"after {1e6 * latency:.3g} µs, as given with --network."
        )
    if each.kind == "strong":
        note += f" The box has {model.planes} planes, which is the largest number of ranks."
    return note

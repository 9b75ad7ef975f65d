"""The tables of a series: speed and efficiency, parts of a step, the link, the model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpilbm.core.units import counted
from mpilbm.view.bench.scaling import percent
from mpilbm.view.bench.table import digits
from mpilbm.view.report.scaling_series import Row, Series, step_seconds

MODELLED = (2, 4, 8, 16, 64, 256, 1024)  # ranks in the table of the model


class Table(NamedTuple):
    """A heading, the names of the columns, cells as text, and what the columns mean."""

    title: str
    head: Sequence[str]
    rows: list[list[str]]
    note: str


def tables(each: Series) -> list[Table]:
    """The tables of a series that have rows."""
    made = (speeds(each), splits(each), throughput(each), predictions(each))
    return [table for table in made if table.rows]


def runs(rows: Sequence[Row]) -> Table:
    """The files and the commands that made them."""
    keys = ("file", "ranks", "nodes", "date", "mpilbm", "mpi", "command")
    files = {row["file"]: row for row in rows}
    cells = [[str(row[key]) for key in keys] for row in files.values()]
    return Table("Measurements", (*keys[:-2], "MPI", "command"), cells, "")


def speeds(each: Series) -> Table:
    """GLUPS and efficiency, measured and of the model."""
    head = ("ranks", "nodes", "GLUPS", "min–max", "one rank alone", "efficiency", "halo hidden",
            "model GLUPS", "model efficiency")  # fmt: skip

    def cells(row: Row) -> list[str]:
        n, slowest = row["ranks"], row.get(row["against"] or "", {}).get("glups")
        known = each.model if each.model and n <= max(each.model.ranks, default=0) else None
        return [
            str(n), str(row["nodes"]), f"{row['glups']:.4g}",
            "–".join(f"{g:.4g}" for g in row["spread"]),
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
    return Table("Speed", head, list(map(cells, each.rows)), note)


def _against(row: Row) -> str:
    return "the box" if row["against"] == "whole" or row["ranks"] == 1 else "its slab"


def splits(each: Series) -> Table:
    """The parts of a step's time."""
    parts = ("edge", "bulk", "exchange", "host")
    head = ("ranks", "step, µs", "edge", "bulk", "visible exchange", "host, concurrent")
    cells = [
        [str(row["ranks"]), digits(1e6 * step_seconds(row)),
         *(digits(1e6 * row["split"][part]) for part in parts)]
        for row in each.rows if row.get("split")
    ]  # fmt: skip
    note = (
        "Parts of steps that were launched one by one, with events in between. With recorded and "
        "replayed steps (nccl, cuda_ipc) a step of a small box takes less than their sum."
    )
    return Table("Parts of a step", head, cells, note)


def throughput(each: Series) -> Table:
    """The bandwidth required at 100 % efficiency, and that of the link [Obrecht 2013, table 1]."""
    head = ("ranks", "kernels, ms", "faces, MB", "required GB/s", "of a rank", "link GB/s",
            "required / link", "latency, µs")  # fmt: skip

    def cells(row: Row) -> list[str]:
        kernels = step_seconds(row) * row["efficiency"]
        total, most = sum(row["halo"]["bytes"]), max(row["halo"]["bytes"])
        given = row["link"]["bandwidth"]
        return [
            str(row["ranks"]), digits(1e3 * kernels), digits(total / 1e6),
            digits(total / kernels / 1e9), digits(most / kernels / 1e9), digits(given / 1e9),
            digits(most / kernels / given), digits(1e6 * row["link"]["latency"]),
        ]  # fmt: skip

    note = (
        "Kernels: time of a step at 100 % efficiency. Faces: bytes that all ranks send in a step; "
        "required: these bytes divided by the time of the kernels. Link: bytes per second sent by "
        "a rank that exchanges with both neighbours, all ranks at once, with the halo of the run."
    )
    rows = [row for row in each.rows if row.get("link") and row["efficiency"]]
    return Table("Link", head, list(map(cells, rows)), note)


def predictions(each: Series) -> Table:
    """The numbers of the model, and its predictions for many ranks."""
    known = each.model
    if known is None:
        return Table("Model", (), [], "")
    ranks = [n for n in MODELLED if n in known.ranks]
    values = [[f"{known.glups(n):.4g} ({percent(known.efficiency(n))})" for n in ranks]]
    return Table("Model", [counted(n, "rank") for n in ranks], values if ranks else [],
                 _numbers(each, known))  # fmt: skip


def _numbers(each: Series, known: Any) -> str:
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
    elif known.nodes == 1:
        network = known.network
        note += (
            f" Beyond {counted(known.measured, 'rank')} a node sends "
            f"{network.bandwidth / 1e9:.3g} GB/s after {1e6 * network.latency:.3g} µs, as given "
            "with --network."
        )
    if each.kind == "strong":
        note += f" The box has {model.planes} planes, which is the largest number of ranks."
    return note

"""The ping-pong of `mpilbm info --probe` as a table and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mpilbm.parallel.agree import on_root
from mpilbm.parallel.communicator import MessagePassing
from mpilbm.parallel.ranks import abort_on_error
from mpilbm.run.preflight.installation import collect, show
from mpilbm.view.bench.exchange_time import Route, pingpong
from mpilbm.view.bench.table import facts, markdown, require_place, write_json


def probe(command: str, file: Path | None) -> None:
    """Show the facts of one rank, then measure messages between the ranks of the launcher."""
    with abort_on_error() as comm:
        require_place(file)
        on_root(comm, lambda: show(collect(probe=True)))
        report(comm, command, file)


def report(comm: MessagePassing, command: str, file: Path | None) -> None:
    """Measure, print and write as JSON. Collective."""
    found = pingpong(comm)
    on_root(comm, deliver, found, facts(comm, command), file)


def deliver(found: Sequence[Route], known: dict[str, Any], file: Path | None) -> None:
    """Print a table and a sentence for each route; write all figures."""
    click.echo("\n".join(lines(found)))
    if file:
        rows = [each.row() for each in found]
        write_json(known | {"pingpong": rows}, file)


def lines(found: Sequence[Route]) -> list[str]:
    """A table of µs and GB/s by bytes and route, and for each route latency and bandwidth."""
    measured = [each for each in found if each.seconds]
    titles = [f"{each.halo}, {each.memory} memory" for each in measured]
    head = ["bytes", *(f"{title}: {unit}" for title in titles for unit in ("µs", "GB/s"))]
    rows = [
        [size, *(text for each in measured for text in _figures(size, each.seconds[k]))]
        for k, size in enumerate(measured[0].sizes)
    ]
    summary = [
        f"{title}: latency {1e6 * each.latency:.3g} µs, bandwidth {each.bandwidth / 1e9:.3g} GB/s"
        for title, each in zip(titles, measured, strict=True)
    ]
    problems = [f"{each.halo}, {each.memory} memory: not measured: {each.problem}"
                for each in found if each.problem]  # fmt: skip
    title = "one way, between the first and the last rank"
    return [title, *markdown(head, rows), *summary, *problems]


def _figures(size: int, seconds: float) -> tuple[str, str]:
    return f"{1e6 * seconds:.3g}", f"{size / seconds / 1e9:.3g}"

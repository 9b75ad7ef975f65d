"""`mpilbm bench --weak` and `--strong`: a box on all ranks, compared with a single rank."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from mpilbm.core.errors import CommandError
from mpilbm.core.machine import cache
from mpilbm.parallel import Communicator, launcher, on_root
from mpilbm.parallel.ranks import Serial
from mpilbm.run.progress import say
from mpilbm.run.setup import open_device
from mpilbm.view.bench import exchange_time
from mpilbm.view.bench.table import (
    HEAD,
    deliver,
    facts,
    markdown,
    names,
    problems,
    require_place,
)
from mpilbm.view.bench.variants import (
    DEFAULTS,
    Row,
    Series,
    Variant,
    dimensions,
    label,
    plan,
)

BOX = DEFAULTS | {"setting": "periodic"}
TINY = 16  # cells a side: the launches dominate the time of a step
ENVIRONMENT = ("MPILBM_", "NCCL_", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")


def bench(
    comm: Communicator,
    refused: list[str],
    overrides: Sequence[str],
    options: dict[str, Any],
    kinds: dict[str, str | None],
    file: Path | None,
) -> None:
    """Measure, print and write; exit code 2 if nothing could be measured. Collective.

    `kinds`: the size for "weak" (cells of each rank) or "strong" (cells in all), exactly one of
    them given. `options` are the other options of the command; `refused` are given options that
    cannot be combined with it. Raises CommandError before it measures.
    """
    require_place(file)
    (kind, size), *more = ((kind, size) for kind, size in kinds.items() if size is not None)
    for other in [*(f"--{name}" for name, _ in more), *refused]:
        raise CommandError(f"--{kind} measures a standard box of the given size; leave out {other}")
    series = plan(comm, None, overrides, options | {"size": size}, BOX, strong=kind == "strong")
    known = everything(comm) | {"scaling": kind}
    rows = list(Scaling(kind, series).rows(comm))
    if file is None:  # a name that no other run uses
        box, now = size.replace(",", "_"), f"{datetime.now():%Y-%m-%dT%H%M%S}"
        file = Path(f"{kind}_{box}_{comm.size}ranks_{now}.json")
    on_root(comm, _deliver, known | {"rows": rows}, file)
    if all("problem" in row for row in rows):
        sys.exit(2)


def everything(comm: Communicator) -> dict[str, Any]:
    """Everything needed to repeat the measurement: versions, hosts, environment. Collective."""
    MPI = launcher.library()
    hosts = comm.allgather(platform.node())
    package = sorted(
        file for file in Path(__file__).parents[2].rglob("*") if file.suffix in (".py", ".h")
    )
    kept = {name: value for name, value in os.environ.items() if name.startswith(ENVIRONMENT)}
    return facts(comm) | {
        "time": datetime.now().isoformat(timespec="seconds"),
        "nodes": len(set(hosts)),
        "hosts": sorted(set(hosts)),
        "mpi": launcher.library_name(MPI) if MPI else None,
        "environment": launcher.settings() | kept,
        "sources": cache.digest(*(file.read_bytes() for file in package)),
    }


def on_device(series: Series, backend: str, index: int | None) -> Series:
    """The series on the device that this rank uses in a run of all ranks."""
    same = [f"backend.name='{backend}'"]
    if index is not None:
        same.append(f"backend.device={index}")
    return replace(series, backend=None, overrides=(*series.overrides, *same))


@dataclass(frozen=True)
class Scaling:
    """The variants of a series on all ranks, and on each rank by itself, on its own device.

    A row contains that of the series and

    alone        one rank with a box of the size of its slab
    whole        (strong) one rank with the whole box
    overhead     seconds of a step of a tiny box, minus those of its memory traffic
    against      "whole", or "alone" if the whole box did not fit
    efficiency   GLUPS per rank relative to the slowest rank of `against`
    link         see exchange_time.link
    """

    kind: str
    series: Series

    def rows(self, comm: Communicator) -> Iterator[Row]:
        """A row for each variant, as soon as it is measured; collective."""
        for variant in self.series.variants:
            (row,) = replace(self.series, variants=(variant,)).rows(comm)
            if "problem" not in row:
                row |= self._alone_and_link(variant, row, comm)
                say(comm, f"{label(row)}: efficiency {percent(row['efficiency'])}")
            yield row

    def _alone_and_link(self, variant: Variant, row: Row, comm: Communicator) -> Row:
        """The results of one rank alone, and of the link between the ranks."""
        case = self.series.typed(variant, Path("box.toml"), comm)
        device = open_device(case.backend, comm).device
        own = on_device(self.series, row["backend"], device.index)
        *sides, last = row["size"]
        tiny = (TINY,) * dimensions(variant)
        found: dict[str, Any] = {
            "alone": self._alone(variant, (*sides, -(-last // comm.size)), own, comm)
        }
        if self.kind == "strong" and comm.size > 1:
            found["whole"] = self._alone(variant, (*sides, last), own, comm)
        found["overhead"] = _overhead(self._alone(variant, tiny, own, comm), row)
        against = next((k for k in ("whole", "alone") if "glups" in found.get(k, ())), None)
        slowest = min(found[against]["glups"]) if against else None
        efficiency = row["glups"] / comm.size / slowest if against else None
        found |= {"against": against, "efficiency": efficiency}
        halo, _ = case.halo.resolve(comm, device)
        return found | {"link": exchange_time.link(halo, comm, device)}

    def _alone(
        self, variant: Variant, size: Sequence[int], series: Series, comm: Communicator
    ) -> Row:
        """Figures of a box of this size on each rank by itself, or its `problem`."""
        comm.barrier()
        mine = series.row(variant._replace(size=tuple(size)), Serial())
        every = comm.allgather(mine)
        for one in every:
            if "problem" in one:
                return {"size": list(size), "problem": one["problem"]}
        gathered = {key: [one[key] for one in every] for key in ("glups", "seconds", "steps")}
        cells = {key: mine[key] for key in ("size", "fluid_cells", "bytes_per_update")}
        return cells | gathered | {"copy_bandwidth": [one["copy_bandwidth"] for one in every]}


def _overhead(tiny: Row, row: Row) -> float | None:
    """Seconds of a step of the tiny box on the slowest rank, minus those of its memory traffic."""
    if "problem" in tiny:
        return None
    updates = tiny["fluid_cells"] / min(tiny["glups"]) / 1e9
    traffic = tiny["fluid_cells"] * tiny["bytes_per_update"]
    return max(0.0, updates - traffic / (row["copy_bandwidth"] / row["ranks"]))


def _deliver(found: dict[str, Any], file: Path) -> None:
    def cells(row: Row) -> list[str]:
        alone = f"{min(row[row['against']]['glups']):.4g}" if row["against"] else "–"
        return [*names(row), f"{row['glups']:.4g}", alone, percent(row["efficiency"])]

    measured = [row for row in found["rows"] if "problem" not in row]
    lines = markdown((*HEAD, "GLUPS", "one rank alone", "efficiency"), map(cells, measured))
    deliver([*lines, *problems(found["rows"])], found, file)
    click.echo(f"wrote {file}")


def percent(share: float | None) -> str:
    """97.3 %; a dash if it is unknown."""
    return "–" if share is None else f"{100 * share:.1f} %"

"""The command `mpilbm`. Each command imports the modules that it needs, so that all start fast."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mpilbm import __version__
from mpilbm.core.machine import processes, terminal
from mpilbm.core.machine.command_line import (
    FILE,
    CommandGroup,
    PositiveNumber,
    launched_rank,
    load_plugins,
    report_files,
)
from mpilbm.core.printable import one_line

case_argument = click.argument("case", type=FILE)
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Override a key of the case, e.g. run.steps=100 or boundary.0.name='bounce_back'.",
)  # fmt: skip


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpilbm")
@click.pass_context
def cli(context: click.Context, plugin: tuple[Path, ...], debug: bool) -> None:
    """Lattice Boltzmann flows on GPUs and CPUs: mpirun -n N mpilbm run case.toml."""
    if launched_rank() and context.invoked_subcommand not in ("run", "bench", "precision", "info"):
        context.exit(0)  # under mpirun one process executes the other commands
    if context.invoked_subcommand != "run":  # the results of a run are its files
        context.call_on_close(terminal.require_written)
    load_plugins(plugin)


@cli.command()
@case_argument
@set_option
@click.option("--output", type=FILE, help="Folder for all files.  [default: CASE.out]")
@click.option("--restart", metavar="FILE|auto",
              help="Continue from a checkpoint; auto: from the newest intact one.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the files of an earlier run.")
def run(
    case: Path,
    overrides: tuple[str, ...],
    output: Path | None,
    restart: str | None,
    overwrite: bool,
) -> None:
    """Run a case; under mpirun on several ranks."""
    from mpilbm.case.case import load_case
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.run.run import run
    from mpilbm.storage.directory import default_directory

    with abort_on_error() as comm:
        directory = output or default_directory(case)
        run(load_case(case, overrides), comm, directory, restart, overwrite)


@cli.command()
@case_argument
@set_option
@click.option("--ranks", type=click.IntRange(1), default=1, show_default=True,
              help="Number of ranks.")  # fmt: skip
@click.option("--gpu-memory", type=PositiveNumber(), metavar="GB",
              help="Memory of each device.  [default: that of this machine]")  # fmt: skip
def check(case: Path, overrides: tuple[str, ...], ranks: int, gpu_memory: float | None) -> None:
    """Check a case and plan its run, without running it.

    Reports memory, disk space, stability, and settings that are probably not intended.
    """
    from mpilbm.case.case import load_case
    from mpilbm.run.preflight.plan import plan
    from mpilbm.run.preflight.report import show

    report = plan(load_case(case, overrides), ranks, gpu_memory)
    show(report)
    sys.exit(0 if report.runs else 2)


def names_option(option: str, text: str) -> Callable[[Any], Any]:
    """An option for a list of names separated by commas."""
    return click.option(f"--{option}", metavar="NAME,…|all", help=text)


@cli.command()
@click.argument("case", type=FILE, required=False)
@set_option
@names_option("lattice", "Lattices.  [default: D3Q19]")
@names_option("collision", "Collisions.  [default: trt]")
@names_option("layout", "Memory layouts.  [default: ab]")
@names_option("precision", "compute/storage: float32/float32, float32/float16, float32/mixed, "
              "float64/float32, float64/float64.  [default: float32/float32]")  # fmt: skip
@names_option("setting", "Standard boxes: periodic, cavity, porous, duct.  "
              "[default: the first three]")  # fmt: skip
@click.option("--size", metavar="N|NxNxN,…", help="Cells of a box, for each rank.  "
              "[default: 128^3, 2048^2; on a GPU 512^3, 8192^2]")  # fmt: skip
@click.option("--weak", metavar="SIZE", help="Weak scaling with this number of cells per rank.")
@click.option("--strong", metavar="SIZE", help="Strong scaling with this total number of cells.")
@click.option("--porosity", type=PositiveNumber(max=1, max_open=True), default=0.62,
              show_default=True, help="Porosity of the porous box.")  # fmt: skip
@click.option("--backend", help="Name of a backend.  [default: auto]")
@click.option("--steps", type=click.IntRange(1),
              help="Steps of each repeat.  [default: as many as take 1/4 s]")  # fmt: skip
@click.option("--repeats", type=click.IntRange(5), default=5, show_default=True,
              help="Number of repeats.")  # fmt: skip
@click.option("--tune", is_flag=True, help="Tune the tiles and blocks of the kernels again.")
@click.option("--startup", is_flag=True,
              help="Measure the start-up time, without and with the kernel cache.")  # fmt: skip
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write all results to this file.")
def bench(
    case: Path | None,
    overrides: tuple[str, ...],
    tune: bool,
    startup: bool,
    file: Path | None,
    weak: str | None,
    strong: str | None,
    **options: Any,
) -> None:
    """Measure the speed of CASE or of standard boxes.

    Also measures the bandwidth of a copy in memory, with which speeds are compared.
    """
    from mpilbm.backends import tuning
    from mpilbm.parallel.agree import on_root
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.view.bench import scaling, table

    with abort_on_error() as comm:
        if tune:
            on_root(comm, tuning.forget)  # the launch shapes measured on this machine
        if weak is not None or strong is not None:
            kinds = {"weak": weak, "strong": strong}
            others = {"CASE": case, "--size": options["size"], "--startup": startup}
            refused = [name for name, given in others.items() if given]
            scaling.bench(comm, refused, overrides, options, kinds, file)
        else:
            table.bench(comm, case, overrides, options, startup, file)


@cli.command()
@case_argument
@set_option
@click.option("--compare", metavar="NAME,…", default="precision", show_default=True,
              help="What to vary, one at a time: precision, layout, collision.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1),
              help="Steps of each variant.  [default: those of 10 s, at least 100]")  # fmt: skip
@click.option("--tolerance", type=PositiveNumber(), default=1e-3, show_default=True,
              help="Largest deviation from float64 of a recommended variant.")  # fmt: skip
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write all results to this file.")
def precision(
    case: Path,
    overrides: tuple[str, ...],
    compare: str,
    steps: int | None,
    tolerance: float,
    file: Path | None,
) -> None:
    """Compare number formats, layouts or collisions with float64, in a shortened CASE.

    Reports the speed, the memory and the deviations of each, and recommends one.
    """
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.view.bench.precision import precision

    with abort_on_error() as comm:
        precision(comm, case, overrides, compare, steps, tolerance, file)


@cli.command()
@click.argument("directory", type=FILE)
@click.option("--output", type=FILE, help="Folder for the page.  [default: DIRECTORY]")
@click.option("--network", metavar="B/s,s",
              help="Bandwidth and latency of a node's network, e.g. 50GB/s,2us: extends the model "
              "of measurements on one node to 1024 ranks.")  # fmt: skip
def report(directory: Path, output: Path | None, network: str | None) -> None:
    """Write a page about a run, or about files of bench --weak and --strong.

    DIRECTORY is the output folder of a run, or a folder with these JSON files.
    """
    from mpilbm.view.report.pages import report

    report_files(report(directory, output, network))


@cli.command()
@click.option("--probe", is_flag=True,
              help="Test whether MPI can send device memory; under mpirun, also measure latency "
              "and bandwidth of messages.")  # fmt: skip
@click.option("--json", "file", type=FILE, metavar="FILE",
              help="Write these measurements to this file.")  # fmt: skip
def info(probe: bool, file: Path | None) -> None:
    """Show versions, MPI, devices and compilers, with fixes."""
    from mpilbm.core.errors import CommandError
    from mpilbm.parallel import launcher
    from mpilbm.run.preflight.installation.machine import collect, show

    together = probe and launcher.several_ranks()
    if file and not together:
        raise CommandError(
            f"--json {file}: requires a measurement; use mpirun -n 2 mpilbm info --probe"
        )
    if together:
        from mpilbm.view.bench.exchange_time import probe as measure_messages

        measure_messages(file)
    elif not launched_rank():
        show(collect(probe))


@cli.command("list")
@click.argument("kind", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_names(kind: str | None, as_json: bool) -> None:
    """List the names that a case can use.

    Each name is shown with its parameters. KIND restricts the list to one kind, e.g. collisions.
    """
    from mpilbm.run.preflight.catalogue import describe, show

    show(describe(kind), as_json)


@cli.command()
@case_argument
@set_option
@click.option("--kernel", metavar="NAME", help="This kernel only.")
def source(case: Path, overrides: tuple[str, ...], kernel: str | None) -> None:
    """Print the generated kernels of a case."""
    from mpilbm.case.case import load_case
    from mpilbm.run.preflight.catalogue import show_source

    show_source(load_case(case, overrides), kernel)


@cli.command()
def schema() -> None:
    """Print the JSON schema of a case file."""
    import json

    from mpilbm.case.case import schema

    click.echo(json.dumps(schema(), indent=2))


@cli.command()
@click.argument("name", type=FILE, required=False)
@click.option("--template", metavar="CASE", default="cavity", show_default=True,
              help="Name of a case that comes with the package, see --list.")  # fmt: skip
@click.option("--dimensions", type=click.Choice(["2", "3"]),
              help="Dimensions of the cavity.  [default: 2]")  # fmt: skip
@click.option("--list", "list_cases", is_flag=True, help="List these cases.")
def new(name: Path | None, template: str, dimensions: str | None, list_cases: bool) -> None:
    """Write NAME.toml, a case to start from, and the files that it reads."""
    from mpilbm.case.new import shipped_cases
    from mpilbm.case.new.template import write

    if list_cases:
        for line in shipped_cases.listing():
            click.echo(one_line(line))
        return
    report_files(write(name, int(dimensions) if dimensions else None, template))


@cli.command()
@click.argument("directory", type=FILE)
@click.option("--output", type=FILE, help="Folder for the pictures.  [default: DIRECTORY]")
@click.option("--reference", multiple=True, type=FILE, metavar="FILE.csv",
              help="Draw a centre-line profile with these points (columns y,u_Re100,… or x,v); "
              "may be repeated.")  # fmt: skip
@click.option("--reynolds", type=PositiveNumber(),
              help="Column of the reference.  [default: Reynolds number of the case]")  # fmt: skip
@click.option("--step", type=click.IntRange(0), help="Step of the snapshot.  [default: the last]")
@click.option("--field", metavar="NAME", help="Draw this field only, e.g. rho or phi.")
@click.option("--plane", metavar="AXIS=POSITION",
              help="Draw this plane, e.g. x=32 (cells).  "
              "[default: the middle of the box or of the body]")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["png", "svg", "pdf"]), default="png",
              show_default=True, help="Format of the files.")  # fmt: skip
@click.option("--film", is_flag=True, help="Make a film of all snapshots, of u or of --field.")
def plot(
    directory: Path,
    output: Path | None,
    reference: tuple[Path, ...],
    reynolds: float | None,
    step: int | None,
    field: str | None,
    plane: str | None,
    kind: str,
    film: bool,
) -> None:
    """Draw the results of a run: fields of a snapshot, forces, tables over time."""
    from mpilbm.view.plot.pictures import Choice, draw, draw_film
    from mpilbm.view.results.run import open_run

    choice = Choice(step=step, field=field, plane=plane, format=kind)
    if film:
        report_files([draw_film(directory, output, choice)])
        return
    files, sentences = draw(directory, output, reference, reynolds, choice)
    for line in [*sentences, *open_run(directory).unfinished]:
        click.echo(one_line(line))
    report_files(files)


@cli.command()
@click.argument("directory", type=FILE)
@click.option("--once", is_flag=True, help="Print the present state and end.")
def watch(directory: Path, once: bool) -> None:
    """Show the progress and the curves of a run in the terminal, every second."""
    from mpilbm.view.plot.watch import watch

    watch(directory, once)


@cli.command()
@click.argument("topic", required=False)
@click.option("--html", type=FILE, metavar="DIR",
              help="Write all chapters to this folder as pages with a search.")  # fmt: skip
def manual(topic: str | None, html: Path | None) -> None:
    """Show a chapter of the manual, or list all chapters."""
    from mpilbm.view.manual import pages, site

    if html is not None:
        page = site.build(html, topic)
        report_files([f"{page}; its search needs a server: {site.SERVE} {html}"])
    else:
        pages.show(topic)


def main() -> None:
    """Entry point."""
    terminal.guard()
    os.environ["PATH"] = processes.search_path()  # also for libraries: Matplotlib starts fc-list
    cli(prog_name="mpilbm")

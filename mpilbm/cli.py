"""The command `mpilbm`. Each command imports the modules that it needs, so that all start fast."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import click

from mpilbm import __version__
from mpilbm.core import machine
from mpilbm.core.machine import terminal
from mpilbm.core.machine.command_line import (
    FILE,
    CommandGroup,
    PositiveNumber,
    launched_rank,
    load_plugins,
    option,
    report_files,
)
from mpilbm.core.machine.garbage import without_collections
from mpilbm.core.printable import one_line
from mpilbm.run.proposal.options import Given, flow_options

Settings = tuple[str, ...]  # of --set
COUNT, POSITIVE = click.IntRange(1), PositiveNumber()
SHARE = PositiveNumber(max=1, max_open=True)

case_argument = click.argument("case", type=FILE)
set_option = option(
    "--set=KEY=VALUE overrides",
    "Override a key of the case, e.g. run.steps=100 or boundary.0.name='bounce_back'.",
    multiple=True,
)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mpilbm")
@click.pass_context
def cli(context: click.Context, plugin: tuple[Path, ...], debug: bool) -> None:
    """Lattice Boltzmann flows on GPUs and CPUs: mpirun -n N mpilbm run case.toml."""
    if launched_rank() and context.invoked_subcommand not in ("run", "bench", "precision", "info"):
        context.exit(0)  # under mpirun one process executes the other commands
    if context.invoked_subcommand != "run":  # the results of a run are its files
        context.call_on_close(terminal.require_written)
    context.call_on_close(gc.unfreeze)
    load_plugins(plugin)


@cli.command()
@case_argument
@set_option
@option("--output", "Folder for all files.  [default: CASE.out]", type=FILE)
@option("--restart=FILE|auto", "Continue from a checkpoint; auto: from the newest intact one.")
@option("--overwrite", "Replace the files of an earlier run.", is_flag=True)
def run(
    case: Path, overrides: Settings, output: Path | None, restart: str | None, overwrite: bool
) -> None:
    """Run a case; under mpirun on several ranks."""
    with without_collections(lasting=True):
        from mpilbm.case.case import load_case
        from mpilbm.parallel.ranks import abort_on_error
        from mpilbm.run.progress import Say
        from mpilbm.run.run import run
        from mpilbm.storage.directory import default_directory

    with abort_on_error() as comm:
        directory = output or default_directory(case)
        with without_collections(lasting=True), Say(comm).during("reading the case and its files"):
            read = load_case(case, overrides)
        run(read, comm, directory, restart, overwrite)


@cli.command()
@case_argument
@set_option
@option("--ranks", "Number of ranks.", type=COUNT, default=1)
@option("--gpu-memory=GB", "Memory of each device.  [default: that of this machine]", type=POSITIVE)
def check(case: Path, overrides: Settings, ranks: int, gpu_memory: float | None) -> None:
    """Check a case and plan its run, without running it.

    Reports memory, disk space, stability, and settings that are probably not intended.
    """
    from mpilbm.case.case import load_case
    from mpilbm.run.preflight.plan import plan
    from mpilbm.run.preflight.report import show

    report = plan(load_case(case, overrides), ranks, gpu_memory)
    show(report)
    sys.exit(0 if report.runs else 2)


@cli.command()
@click.argument("case", type=FILE, required=False)
@set_option
@option("--lattice=NAME,…|all", "Lattices.  [default: D3Q19]")
@option("--collision=NAME,…|all", "Collisions.  [default: trt]")
@option("--layout=NAME,…|all", "Memory layouts.  [default: ab]")
@option(
    "--precision=NAME,…|all",
    "compute/storage: float32/float32, float32/float16, float32/mixed, float64/float32, "
    "float64/float64.  [default: float32/float32]",
)
@option(
    "--setting=NAME,…|all",
    "Standard boxes: periodic, cavity, porous, duct.  [default: the first three]",
)
@option(
    "--size=N|NxNxN,…",
    "Cells of a box, for each rank.  [default: 128^3, 2048^2; on a GPU 512^3, 8192^2]",
)
@option("--weak=SIZE", "Weak scaling with this number of cells per rank.")
@option("--strong=SIZE", "Strong scaling with this total number of cells.")
@option("--porosity", "Porosity of the porous box.", type=SHARE, default=0.62)
@option("--backend", "Name of a backend.  [default: auto]")
@option("--steps", "Steps of each repeat.  [default: as many as take 1/4 s]", type=COUNT)
@option("--repeats", "Number of repeats.", type=click.IntRange(5), default=5)
@option("--tune", "Tune the tiles and blocks of the kernels again.", is_flag=True)
@option("--startup", "Measure the start-up time, without and with the kernel cache.", is_flag=True)
@option("--json=FILE file", "Write all results to this file.", type=FILE)
def bench(case: Path | None, overrides: Settings, **options: Any) -> None:
    """Measure the speed of CASE or of standard boxes.

    Also measures the bandwidth of a copy in memory, with which speeds are compared.
    """
    from mpilbm.backends import tuning
    from mpilbm.parallel import on_root
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.view.bench import scaling, table

    tune, startup, file = (options.pop(key) for key in ("tune", "startup", "file"))
    scales = {key: options.pop(key) for key in ("weak", "strong")}
    with abort_on_error() as comm:
        if tune:
            on_root(comm, tuning.forget)  # the launch shapes measured on this machine
        if any(size is not None for size in scales.values()):
            others = {"CASE": case, "--size": options["size"], "--startup": startup}
            refused = [name for name, given in others.items() if given]
            scaling.bench(comm, refused, overrides, options, scales, file)
        else:
            table.bench(comm, case, overrides, options, startup, file)


@cli.command()
@case_argument
@set_option
@option(
    "--compare=NAME,…",
    "What to vary, one at a time: precision, layout, collision.",
    default="precision",
)
@option("--steps", "Steps of each variant.  [default: those of 10 s, at least 100]", type=COUNT)
@option(
    "--tolerance",
    "Largest deviation from float64 of a recommended variant.",
    type=POSITIVE,
    default=1e-3,
)
@option("--json=FILE file", "Write all results to this file.", type=FILE)
def precision(case: Path, overrides: Settings, **options: Any) -> None:
    """Compare number formats, layouts or collisions with float64, in a shortened CASE.

    Reports the speed, the memory and the deviations of each, and recommends one.
    """
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.view.bench.precision import precision

    with abort_on_error() as comm:
        precision(comm, case, overrides, **options)


@cli.command()
@click.argument("directory", type=FILE)
@option("--output", "Folder for the page.  [default: DIRECTORY]", type=FILE)
@option(
    "--network=B/s,s",
    "Bandwidth and latency of a node's network, e.g. 50GB/s,2us: extends the model of "
    "measurements on one node to 1024 ranks.",
)
def report(directory: Path, output: Path | None, network: str | None) -> None:
    """Write a page about a run, or about files of bench --weak and --strong.

    DIRECTORY is the output folder of a run, or a folder with these JSON files.
    """
    from mpilbm.view.report import report

    report_files(report(directory, output, network))


@cli.command()
@option(
    "--probe",
    "Test whether MPI can send device memory; under mpirun, also measure latency and "
    "bandwidth of messages.",
    is_flag=True,
)
@option("--json=FILE file", "Write these measurements to this file.", type=FILE)
def info(probe: bool, file: Path | None) -> None:
    """Show versions, MPI, devices and compilers, with fixes."""
    from mpilbm.core.errors import CommandError
    from mpilbm.parallel import launcher
    from mpilbm.run.preflight.installation import collect, show

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
@option("--json as_json", "Print JSON.", is_flag=True)
def list_names(kind: str | None, as_json: bool) -> None:
    """List the names that a case can use.

    Each name is shown with its parameters. KIND restricts the list to one kind, e.g. collisions.
    """
    from mpilbm.run.preflight.catalogue import describe, show

    show(describe(kind), as_json)


@cli.command()
@case_argument
@set_option
@option("--kernel=NAME", "This kernel only.")
def source(case: Path, overrides: Settings, kernel: str | None) -> None:
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
@option(
    "--template=CASE",
    "external or internal: proposed for the flow of the options below; or a case of --list.",
    default="cavity",
)
@option("--dimensions", "Dimensions of the cavity.  [default: 2]", type=click.Choice(["2", "3"]))
@flow_options
@option("--list list_cases", "List these cases.", is_flag=True)
def new(
    name: Path | None, template: str, dimensions: str | None, list_cases: bool, **flow: Any
) -> None:
    """Write NAME.toml, a case to start from, and the files that it reads."""
    if list_cases:
        from mpilbm.case.new_case import listing

        for line in listing():
            click.echo(one_line(line))
    else:
        from mpilbm.run.proposal.new import write

        report_files(write(name, template, dimensions, Given(**flow)))


@cli.command()
@click.argument("directory", type=FILE)
@option("--output", "Folder for the pictures.  [default: DIRECTORY]", type=FILE)
@option(
    "--reference=FILE.csv",
    "Draw a centre-line profile with these points (columns y,u_Re100,… or x,v); may be repeated.",
    multiple=True,
    type=FILE,
)
@option(
    "--reynolds", "Column of the reference.  [default: Reynolds number of the case]", type=POSITIVE
)
@option("--step", "Step of the snapshot.  [default: the last]", type=click.IntRange(0))
@option("--field=NAME", "Draw this field only, e.g. rho or phi.")
@option(
    "--plane=AXIS=POSITION",
    "Draw this plane, e.g. x=32 (cells).  [default: the middle of the box or of the body]",
)
@option("--format", "Format of the files.", type=click.Choice(["png", "svg", "pdf"]), default="png")
@option("--film", "Make a film of all snapshots, of u or of --field.", is_flag=True)
def plot(
    directory: Path,
    output: Path | None,
    reference: tuple[Path, ...],
    reynolds: float | None,
    film: bool,
    **chosen: Any,
) -> None:
    """Draw the results of a run: fields of a snapshot, forces, tables over time."""
    from mpilbm.view.plot.pictures import Choice, draw, draw_film
    from mpilbm.view.results import open_run

    choice = Choice(**chosen)
    if film:
        report_files([draw_film(directory, output, choice)])
        return
    files, sentences = draw(directory, output, reference, reynolds, choice)
    for line in [*sentences, *open_run(directory).unfinished]:
        click.echo(one_line(line))
    report_files(files)


@cli.command()
@click.argument("directory", type=FILE)
@option("--once", "Print the present state and end.", is_flag=True)
def watch(directory: Path, once: bool) -> None:
    """Show the progress and the curves of a run in the terminal, every second."""
    from mpilbm.view.plot.watch import watch

    watch(directory, once)


@cli.command()
@click.argument("topic", required=False)
@option("--html=DIR", "Write all chapters to this folder as pages with a search.", type=FILE)
def manual(topic: str | None, html: Path | None) -> None:
    """Show a chapter of the manual, or list all chapters."""
    from mpilbm.view.manual import pages

    if html is not None:
        page = pages.build(html, topic)
        report_files([f"{page}; its search needs a server: {pages.SERVE} {html}"])
    else:
        pages.show(topic)


def main() -> None:
    """Entry point."""
    terminal.guard()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # no search for them
    os.environ["PATH"] = machine.search_path()  # also for libraries: Matplotlib starts fc-list
    cli(prog_name="mpilbm")

"""The command `mpilbm`. Modules are imported inside the verbs, so that each starts fast."""

import os
import sys
import traceback
from math import isfinite
from pathlib import Path

import click

from mpilbm import __version__
from mpilbm.errors import INTERRUPTED, MpilbmError
from mpilbm.printable import one_line
from mpilbm.system import processes, terminal

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK",
                  "PALS_RANKID", "SLURM_PROCID")  # fmt: skip


class File(click.Path):
    """A path. An empty one, which a shell makes of a variable that is not set, is refused."""

    def convert(self, value, param, context):
        """The path of a text; it would be the current directory if it is empty."""
        if value == "":
            self.fail("is empty; name a file or folder", param, context)
        return super().convert(value, param, context)


class Above(click.FloatRange):
    """A finite number above 0."""

    def __init__(self, **more):
        super().__init__(0, min_open=True, **more)

    def convert(self, value, param, context):
        """The number of a text; "nan" and "inf" are of no range, whatever Python makes of them."""
        number = super().convert(value, param, context)
        if not isfinite(number):
            self.fail(f"{value} is no finite number", param, context)
        return number


FILE = File(path_type=Path)
PLUGIN = "A Python file that registers more names."
DEBUG = "Show tracebacks of all errors."

a_case = click.argument("case", type=FILE)
settings = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Override a key of the case, e.g. run.steps=100 or boundary.0.name='bounce_back'.",
)  # fmt: skip


def launched_rank() -> int:
    """This process's number under mpirun, 0 without: read without touching MPI."""
    found = (os.environ.get(name) for name in RANK_VARIABLES)
    return next((int(value) for value in found if value and value.isdigit()), 0)


class Verbs(click.Group):
    """The group of verbs: errors of the user end in a message, others in a traceback."""

    def add_command(self, cmd, name=None):
        """Options of the group may also follow the verb."""
        cmd.params += [
            click.Option(["--plugin"], multiple=True, type=FILE, help=PLUGIN, callback=plug_in,
                         expose_value=False),
            click.Option(["--debug"], is_flag=True, help=DEBUG, callback=show_tracebacks,
                         expose_value=False, is_eager=True),  # before a plug-in is loaded
        ]  # fmt: skip
        super().add_command(cmd, name)

    def invoke(self, context):
        """Run a verb; an error of the user's becomes lines on stderr and its exit code."""
        try:
            return super().invoke(context)
        except MpilbmError as error:
            if context.params["debug"]:
                traceback.print_exc()
            terminal.tell(error)
            context.exit(error.exit_code)
        except KeyboardInterrupt as error:
            terminal.tell(str(error) or "interrupted")
            context.exit(getattr(error, "exit_code", INTERRUPTED))


def wrote(files) -> None:
    """Say which files a verb wrote."""
    for file in files:
        click.echo(one_line(f"wrote {file}"))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--plugin", multiple=True, type=FILE, help=PLUGIN)
@click.option("--debug", is_flag=True, help=DEBUG)
@click.version_option(__version__, prog_name="mpilbm")
@click.pass_context
def cli(context, plugin, debug):
    """Lattice Boltzmann flows on GPUs and CPUs: mpirun -n N mpilbm run case.toml."""
    if launched_rank() and context.invoked_subcommand not in ("run", "bench", "info"):
        context.exit(0)  # under mpirun the other verbs are the work of one process
    if context.invoked_subcommand != "run":  # a run's results are its files
        context.call_on_close(terminal.require_written)
    plug_in(context, None, plugin)


def plug_in(context, option, paths) -> None:
    """Load the files of --plugin."""
    for path in paths:
        load_plugin(path)


def show_tracebacks(context, option, wanted) -> None:
    """--debug behind the verb is that of the group."""
    context.find_root().params["debug"] |= wanted


def load_plugin(path: Path) -> None:
    """Import a file of registered names."""
    from mpilbm import registry
    from mpilbm.errors import CommandError
    from mpilbm.system.input_text import NotATextFile, read_text

    if path.suffix != ".py" or not os.path.isfile(path):
        raise CommandError(f"--plugin {path}: is no Python file; give the path of a FILE.py")
    try:
        read_text(path, "latin-1")  # Python finds the encoding
    except (NotATextFile, OSError) as error:
        raise CommandError(f"--plugin {path}: {error}; give the path of a FILE.py") from error
    registry.load_plugin(path)


@cli.command()
@a_case
@settings
@click.option("--output", type=FILE, help="Folder for all files; default: <case>.out")
@click.option("--restart", metavar="FILE|auto", help="Go on from a checkpoint; auto: the last.")
@click.option("--overwrite", is_flag=True, help="Replace the files of an earlier run.")
def run(case, overrides, output, restart, overwrite):
    """Run a case, under mpirun on several ranks."""
    from mpilbm.case.case import load_case
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.run.run import run
    from mpilbm.storage.directory import default_directory

    with abort_on_error() as comm:
        directory = output or default_directory(case)
        run(load_case(case, overrides), comm, directory, restart, overwrite)


@cli.command()
@a_case
@settings
@click.option("--ranks", type=click.IntRange(1), default=1, help="Number of ranks; default: 1.")
@click.option("--gpu-memory", type=Above(), metavar="GB",
              help="Memory of a device: does each rank fit? Default: this machine's.")  # fmt: skip
def check(case, overrides, ranks, gpu_memory):
    """Validate a case and plan its run, without running it."""
    from mpilbm.case.case import load_case
    from mpilbm.preflight.plan import plan
    from mpilbm.preflight.report import show

    report = plan(load_case(case, overrides), ranks, gpu_memory)
    show(report)
    sys.exit(0 if report.runs else 2)


def names(option: str, text: str):
    """An option that lists names with commas."""
    return click.option(f"--{option}", metavar="NAME,…|all", help=text)


@cli.command()
@click.argument("case", type=FILE, required=False)
@settings
@names("lattice", "Default: D3Q19.")
@names("collision", "Default: trt.")
@names("layout", "Default: ab.")
@names("precision", "single, half, mixed, double; default: single.")
@names("setting", "Standard boxes: periodic, cavity, porous, duct; default: the first three.")
@click.option("--size", metavar="N|NxNxN,…", help="Cells of a box, of each rank. Default: 128^3, "
              "2048^2; on a GPU 512^3, 8192^2.")  # fmt: skip
@click.option("--weak", metavar="SIZE", help="Weak scaling: a box with so many cells a rank.")
@click.option("--strong", metavar="SIZE", help="Strong scaling: a box of so many cells in all.")
@click.option("--porosity", type=Above(max=1, max_open=True),
              default=0.62, show_default=True, help="Of the porous box.")  # fmt: skip
@click.option("--backend", help="Name of a backend; default: auto.")
@click.option("--steps", type=click.IntRange(1), help="Of a repeat; default: for 1/4 s.")
@click.option("--repeats", type=click.IntRange(5), default=5, show_default=True)
@click.option("--tune", is_flag=True, help="Choose the kernels' tiles and blocks again.")
@click.option("--startup", is_flag=True, help="Time starts instead: cold, and from the cache.")
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write all figures there.")
def bench(case, overrides, tune, startup, file, weak, strong, **options):
    """Measure the speed of CASE, or of standard boxes, and the bandwidth of a copy."""
    from mpilbm.bench import scaling
    from mpilbm.bench import table as report
    from mpilbm.parallel.ranks import abort_on_error

    with abort_on_error() as comm:
        if tune:
            report.tune_again(comm)
        if weak is not None or strong is not None:
            kinds = {"weak": weak, "strong": strong}
            others = {"CASE": case, "--size": options["size"], "--startup": startup}
            refused = [name for name, given in others.items() if given]
            scaling.bench(comm, refused, overrides, options, kinds, file)
        else:
            report.bench(comm, case, overrides, options, startup, file)


@cli.command()
@click.argument("directory", type=FILE)
@click.option("--output", type=FILE, help="Folder for page and pictures; default: DIRECTORY")
def report(directory, output):
    """Make a page and pictures from files of bench --weak and --strong."""
    from mpilbm.bench.scaling_report import report

    wrote(report(directory, output))


@cli.command()
@click.option("--probe", is_flag=True, help="Also send device memory through MPI and compare; "
              "under mpirun measure how fast messages travel.")  # fmt: skip
@click.option("--json", "file", type=FILE, metavar="FILE", help="Write these measurements there.")
def info(probe, file):
    """Versions, MPI, devices, compilers; what is missing and how to fix it."""
    from mpilbm.errors import CommandError
    from mpilbm.parallel import launcher
    from mpilbm.preflight.machine import collect, show

    together = probe and launcher.ranks() not in (None, 1)
    if file and not together:
        raise CommandError(f"--json {file}: is for what mpirun -n 2 mpilbm info --probe measures")
    if together:
        probe_ranks(file)
    elif not launched_rank():
        show(collect(probe))


def probe_ranks(file):
    """The facts by one rank, then a ping-pong; collective."""
    from mpilbm.bench.pingpong_report import report
    from mpilbm.bench.table import require_place
    from mpilbm.parallel.agree import on_root
    from mpilbm.parallel.ranks import abort_on_error
    from mpilbm.preflight.machine import collect, show

    with abort_on_error() as comm:
        require_place(file)
        on_root(comm, lambda: show(collect(probe=True)))
        report(comm, "mpilbm info --probe", file)


@cli.command("list")
@click.argument("kind", required=False)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_names(kind, as_json):
    """Names that a case can use, with their parameters."""
    from mpilbm.preflight.catalogue import describe, show

    show(describe(kind), as_json)


@cli.command()
@a_case
@settings
@click.option("--kernel", metavar="NAME", help="This kernel only.")
def source(case, overrides, kernel):
    """Print the generated kernels of a case."""
    from mpilbm.case.case import load_case
    from mpilbm.preflight.catalogue import show_source

    show_source(load_case(case, overrides), kernel)


@cli.command()
def schema():
    """Print the JSON schema of a case file."""
    import json

    from mpilbm.case.case import schema

    click.echo(json.dumps(schema(), indent=2))


@cli.command()
@click.argument("name", type=FILE)
@click.option("--dimensions", type=click.Choice(["2", "3"]), default="2", show_default=True)
def new(name, dimensions):
    """Write NAME.toml, a commented case to start from."""
    from mpilbm.case.template import write

    path = write(name, int(dimensions))
    wrote([f"{path}; try: mpilbm check {path}; mpilbm run {path}"])


@cli.command()
@click.argument("directory", type=FILE)
@click.option("--output", type=FILE, help="Folder for the pictures; default: DIRECTORY")
@click.option(
    "--reference",
    multiple=True,
    type=FILE,
    metavar="FILE.csv",
    help="Draw a centre-line profile over these points (columns y,u_Re100,… or x,v).",
)
@click.option("--reynolds", type=Above(),
              help="Column of the reference; default: the case's Reynolds number.")  # fmt: skip
def plot(directory, output, reference, reynolds):
    """Draw the last snapshot and the monitor of a run as PNG."""
    from mpilbm.plot.pictures import draw

    files, sentences = draw(directory, output, reference, reynolds)
    for line in sentences:
        click.echo(one_line(line))
    wrote(files)


@cli.command()
@click.argument("topic", required=False)
@click.option("--html", type=FILE, metavar="DIR",
              help="Write all chapters there as pages with a search.")  # fmt: skip
def manual(topic, html):
    """Show a chapter of the manual; without TOPIC, list the chapters."""
    from mpilbm.manual import pages, site

    if html is not None:
        page = site.build(html, topic)
        wrote([f"{page}; its search needs a server: {site.SERVE} {html}"])
    else:
        pages.show(topic)


def main():
    """Entry point."""
    terminal.guard()
    os.environ["PATH"] = processes.search_path()  # also for libraries: Matplotlib starts fc-list
    cli(prog_name="mpilbm")

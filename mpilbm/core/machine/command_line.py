"""Code shared by the commands: option types, --plugin and --debug, errors and exit codes."""

import os
import traceback
from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import Any

import click

from mpilbm.core.errors import INTERRUPTED, CommandError, MpilbmError, import_problem
from mpilbm.core.machine import terminal
from mpilbm.core.printable import one_line

RANK_VARIABLES = (
    *("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"),
    *("MV2_COMM_WORLD_RANK", "PALS_RANKID", "SLURM_PROCID"),
)


class FilePath(click.Path):
    """A path; refuses the empty text that a shell gives for a variable without a value."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path of a text; an empty text would be the current directory."""
        if value == "":
            self.fail("is empty; name a file or folder", param, ctx)
        return super().convert(value, param, ctx)


class PositiveNumber(click.FloatRange):
    """A finite number above 0."""

    def __init__(self, **limits: Any):
        super().__init__(0, min_open=True, **limits)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number of a text; refuses "nan" and "inf", which pass the check of the range."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


FILE = FilePath(path_type=Path)


def option(usage: str, text: str, **settings: Any) -> Callable[[Any], Any]:
    """An option of click with its help; usage: "--json=FILE file", the last part the parameter."""
    name, *parameter = usage.split()
    name, _, metavar = name.partition("=")
    settings |= {"metavar": metavar or None, "show_default": "default" in settings}
    return click.option(name, *parameter, help=text, **settings)


PLUGIN: dict[str, Any] = {
    "multiple": True,
    "type": FILE,
    "help": "A Python file that registers further names; may be repeated.",
}
DEBUG: dict[str, Any] = {"is_flag": True, "help": "Show the tracebacks of all errors."}


class CommandGroup(click.Group):
    """A group of commands: an MpilbmError or a failed import ends in a message, other errors
    in a traceback.

    --plugin and --debug may be given before or after the name of a command.
    """

    def __init__(self, **more: Any):
        super().__init__(**more)
        self.params += [click.Option(["--plugin"], **PLUGIN), click.Option(["--debug"], **DEBUG)]

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, and --plugin and --debug to its options."""
        cmd.params += [
            click.Option(["--plugin"], **PLUGIN, callback=_load_plugins, expose_value=False),
            # eager: it is set before a plug-in is loaded
            click.Option(
                ["--debug"], **DEBUG, callback=_set_debug, expose_value=False, is_eager=True
            ),
        ]
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error of the user becomes lines on stderr and its exit code."""
        try:
            return super().invoke(ctx)
        except MpilbmError as error:
            if ctx.params["debug"]:
                traceback.print_exc()
            terminal.print_error(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt as error:
            terminal.print_error(str(error) or "interrupted")
            ctx.exit(getattr(error, "exit_code", INTERRUPTED))
        except Exception as error:
            problem = import_problem(error)
            if problem is None or ctx.params["debug"]:
                raise
            terminal.print_error(problem)
            ctx.exit(1)


def _set_debug(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    ctx.find_root().params["debug"] |= wanted


def _load_plugins(ctx: click.Context, option: click.Parameter, paths: Iterable[Path]) -> None:
    load_plugins(paths)


def load_plugins(paths: Iterable[Path]) -> None:
    """Load the files of --plugin."""
    for path in paths:
        load_plugin(path)


def load_plugin(path: Path) -> None:
    """Import a plug-in; CommandError if the file is not a Python file, PluginError if it fails."""
    from mpilbm.core import registry
    from mpilbm.core.files import NotATextFile, read_text

    fix = "give the path of a FILE.py"
    if path.suffix != ".py" or not os.path.isfile(path):
        raise CommandError(f"--plugin {path}: is not a Python file; {fix}")
    try:
        read_text(path, "latin-1")  # Python finds the encoding
    except (NotATextFile, OSError) as error:
        raise CommandError(f"--plugin {path}: {error}; {fix}") from error
    registry.load_plugin(path)


def launched_rank() -> int:
    """The rank of this process under mpirun, else 0; from the environment, without MPI."""
    found = (os.environ.get(name) for name in RANK_VARIABLES)
    return next((int(value) for value in found if value and value.isdigit()), 0)


def report_files(files: Iterable[object]) -> None:
    """Print the names of the files that a command wrote."""
    for file in files:
        click.echo(one_line(f"wrote {file}"))

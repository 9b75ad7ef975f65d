"""The report of a folder: of a run, or of measurements of scaling."""

from os.path import isdir  # False for a name that is too long
from pathlib import Path

from mpilbm.core.errors import CommandError
from mpilbm.storage.own_files import owned
from mpilbm.view.report import run_page
from mpilbm.view.report.scaling import page


def report(directory: Path, output: Path | None = None, network: str | None = None) -> list[Path]:
    """Write the report of a folder; returns the files. Raises CommandError.

    `network`: that between nodes, for the model of a scaling.
    """
    if isdir(directory) and owned(directory):
        if network is not None:
            raise CommandError("--network: applies to measurements of scaling; remove it")
        return run_page.report(directory, output)
    return page.report(directory, output, network)

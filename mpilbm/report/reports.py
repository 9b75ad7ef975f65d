"""The report of a folder: of a run, or of measurements of scaling."""

from os.path import isdir  # False for a name that is too long
from pathlib import Path

from mpilbm.bench import scaling_report
from mpilbm.report import run_page
from mpilbm.storage.own_files import owned


def report(directory: Path, output: Path | None = None) -> list[Path]:
    """Write the report of a folder; returns the files. Raises CommandError."""
    if isdir(directory) and owned(directory):
        return run_page.report(directory, output)
    return scaling_report.report(directory, output)

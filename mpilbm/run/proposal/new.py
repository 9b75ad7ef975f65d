"""Writes the case of `mpilbm new`: one that comes with the package, or a proposal."""

from pathlib import Path

from mpilbm.case import new_case
from mpilbm.core.errors import CommandError
from mpilbm.run.proposal.options import Given


def write(name: Path | None, template: str, dimensions: str | None, given: Given) -> list[str]:
    """Write NAME.toml and the files that it reads; return a line for each file.

    CommandError for a mistake in the options, and for a file that exists.
    """
    if template not in ("external", "internal"):
        number = int(dimensions) if dimensions else None
        return new_case.write(name, number, template, given.names)
    from mpilbm.run.proposal.case_text import text_of  # geometry and kernels: slow to import

    path = new_case.path_of(name)
    if dimensions:
        raise CommandError(f"--dimensions {dimensions}: applies to the template cavity; remove it")
    text = text_of("external" if template == "external" else "internal", given, path)
    new_case.create(path, text.encode())
    return [f"{path}; try: mpilbm check {path}; mpilbm run {path}"]

"""Plots of a run: slices of a snapshot, profiles, statistics, curves over time, and films.

Plots are in lattice units: lengths in cells, times in steps; with [units] in SI. Slices are in the
middle of the box (the plane of the middle cell, or the mean of the two planes next to the middle)
or of a body, see planes.py. Solid cells are grey.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_origin import METADATA
from mpilbm.outputs.drawing import film, fit
from mpilbm.storage import replaced, require_replaceable
from mpilbm.storage.directory import make_folder
from mpilbm.view.plot import pyplot
from mpilbm.view.plot.planes import cuts_of
from mpilbm.view.plot.profiles import Comparison, comparison_figure, profile_figure
from mpilbm.view.plot.slices import (
    draw_speed,
    draw_vorticity,
    field_figure,
    fluid_fields,
    limits_of,
    planes_of,
    slice_figure,
)
from mpilbm.view.plot.statistics_profiles import is_wall_reference, of_statistics
from mpilbm.view.plot.time_series import of_tables
from mpilbm.view.results import Run, open_run
from mpilbm.view.results.snapshot import view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NARROW = 4.8  # inches; text of 9 points is readable on a screen of 400 pixels
FILMED = "u"  # the field of a film, by default


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to draw: a step (None: the last), a field (None: all), a plane (None: the middle).

    `across`: the largest number of panels in a row; None: depends on the figure. With 1 all figures
    have the width NARROW.
    """

    step: int | None = None
    field: str | None = None
    plane: str | None = None
    format: str = "png"
    across: int | None = None


def draw(
    directory: Path | str,
    target: Path | str | None = None,
    references: Sequence[Path | str] = (),
    reynolds: float | None = None,
    choice: Choice | None = None,
) -> tuple[list[Path], list[str]]:
    """Plot the results in an output folder; writes files to `target`, by default the folder.

    Returns the files, and lines of text: the largest deviation from each reference, the means of
    forces, and the permeability. Raises CommandError if the folder contains nothing to draw or a
    file cannot be read or written.
    """
    plt, choice = pyplot(), choice or Choice()
    target = Path(target or directory)
    run = open_run(directory)
    walls = [Path(path) for path in references if is_wall_reference(Path(path))]
    others = [Path(path) for path in references if Path(path) not in walls]
    if choice.field is not None and walls:
        raise CommandError("--field draws one field only; remove it, or --reference")
    figures, sentences = _of_snapshot(plt, run, others, reynolds, choice)
    if choice.field is None:
        of_walls, lines = of_statistics(plt, run, walls, choice.across)
        of_time, more = of_tables(plt, run, choice.across)
        figures, sentences = figures | of_walls | of_time, sentences + lines + more
    if not figures:
        run.snapshots.file()  # reports what is missing
    make_folder(target)
    if choice.across == 1:
        for figure in figures.values():
            figure.set_size_inches(NARROW, figure.get_size_inches()[1])
    files = [
        _save(plt, figure, target / f"{name}.{choice.format}", choice.format)
        for name, figure in figures.items()
    ]
    return files, sentences


def _of_snapshot(
    plt: Any, run: Run, references: Sequence[Path], reynolds: float | None, choice: Choice
) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of one snapshot by name, and lines of text."""
    if choice.step is None and not len(run.steps) and not (references or choice.field):
        return {}, []
    across, field = choice.across, choice.field
    files = run.snapshots.files
    step = max(files, default=0) if choice.step is None else choice.step
    if step not in files:
        run.snapshots.file(choice.step)  # reports what is missing
    with view(files[step]) as snapshot:
        cuts = cuts_of(snapshot, choice.plane)
        if field is not None:
            return {field: field_figure(plt, snapshot, cuts, field, across=across)}, []
        comparisons = [Comparison.read(path, snapshot, reynolds) for path in references]
        figures = {
            "speed": slice_figure(plt, snapshot, draw_speed, cuts, across),
            "vorticity": slice_figure(plt, snapshot, draw_vorticity, cuts, across),
            "profiles": profile_figure(plt, snapshot, across),
        }
        for name in fluid_fields(snapshot):
            figures[name] = field_figure(plt, snapshot, cuts, name, across=across)
        if comparisons:
            figures["comparison"] = comparison_figure(plt, snapshot, comparisons, across)
    return figures, [comparison.sentence() for comparison in comparisons]


def _save(plt: Any, figure: "Figure", path: Path, kind: str) -> Path:
    fit(figure)
    try:
        with replaced(path, "wb") as file:
            figure.savefig(file, format=kind, metadata=METADATA[kind])
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; choose a folder with --output") from error
    finally:
        plt.close(figure)
    return path


def draw_film(
    directory: Path | str, target: Path | str | None = None, choice: Choice | None = None
) -> Path:
    """Write `<field>.mp4`, or .gif without imageio-ffmpeg, of all snapshots; returns its path.

    The colours have the same range in all pictures. Raises CommandError if there are fewer than
    two snapshots, or no package that writes films.
    """
    plt, choice = pyplot(), choice or Choice()
    run, name, ending = open_run(directory), choice.field or FILMED, film.ending()
    if ending is None:
        raise CommandError(f"--{film.MISSING}")
    paths = list(run.snapshots.files.values())
    if len(paths) < 2:
        raise CommandError(
            f"{run.directory}: holds {len(paths)} snapshots; a film needs two or more; write "
            "snapshots more often"
        )
    with view(paths[-1]) as snapshot:
        cuts = cuts_of(snapshot, choice.plane)  # the same in all pictures
    limits = []
    for path in paths:
        with view(path) as snapshot:
            limits.append(limits_of(planes_of(snapshot, cuts, name)))
    ends = min(low for low, _ in limits), max(high for _, high in limits)
    folder = Path(target or directory)
    make_folder(folder)
    made = folder / f"{name}{ending}"
    require_replaceable(made)
    with TemporaryDirectory() as frames:
        pictures = []
        for number, path in enumerate(paths):
            with view(path) as snapshot:
                figure = field_figure(plt, snapshot, cuts, name, ends)
            pictures.append(Path(frames, f"{number:06d}.png"))
            figure.savefig(pictures[-1], format="png")
            plt.close(figure)
        try:
            film.write_film(made, pictures)
        except OSError as error:
            raise CommandError(f"{made}: {error}; choose a folder with --output") from None
    return made

"""Pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import isdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mpilbm.core.errors import CommandError
from mpilbm.core.files.file_origin import METADATA
from mpilbm.outputs.drawing.titles import fit
from mpilbm.outputs.pictures import film
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import replaced, require_replaceable
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
from mpilbm.view.plot.time_series import (
    forces_figure,
    monitor_figure,
    monitor_figures,
    nusselt_figure,
    permeability_figure,
    probe_figure,
    read_monitor,
    residual_figure,
)
from mpilbm.view.results.run import Run, open_run
from mpilbm.view.results.snapshot import view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NARROW = 4.8  # inches; text of 9 points is readable on a screen of 400 pixels


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
    directory = Path(directory)
    target = Path(target or directory)
    run = open_run(directory)
    walls = [Path(path) for path in references if is_wall_reference(Path(path))]
    others = [path for path in references if Path(path) not in walls]
    if choice.field is not None and walls:
        raise CommandError("--field draws one field only; remove it, or --reference")
    figures, sentences = _of_snapshot(plt, run, others, reynolds, choice)
    if choice.field is None:
        for more, lines in (of_statistics(plt, run, walls, choice.across),
                            _of_tables(plt, run, choice.across)):  # fmt: skip
            figures, sentences = figures | more, sentences + lines
    if not figures:
        last_snapshot(directory)  # reports what is missing
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
    plt: Any,
    run: Run,
    references: Sequence[Path | str],
    reynolds: float | None,
    choice: Choice,
) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of one snapshot by name."""
    if choice.step is None and not len(run.steps) and not (references or choice.field):
        return {}, []
    path = (
        last_snapshot(run.directory)
        if choice.step is None
        else run.snapshots.file(choice.step).path
    )
    with view(path) as snapshot:
        cuts = cuts_of(snapshot, choice.plane)
        if choice.field is not None:
            return {
                choice.field: field_figure(plt, snapshot, cuts, choice.field, across=choice.across)
            }, []
        comparisons = [Comparison.read(path, snapshot, reynolds) for path in references]
        figures = {
            "speed": slice_figure(plt, snapshot, draw_speed, cuts, choice.across),
            "vorticity": slice_figure(plt, snapshot, draw_vorticity, cuts, choice.across),
            "profiles": profile_figure(plt, snapshot, choice.across),
        }
        for name in fluid_fields(snapshot):
            figures[name] = field_figure(plt, snapshot, cuts, name, across=choice.across)
        if comparisons:
            figures["comparison"] = comparison_figure(plt, snapshot, comparisons, choice.across)
    return figures, [comparison.sentence() for comparison in comparisons]


def _of_tables(plt: Any, run: Run, across: int | None) -> "tuple[dict[str, Figure], list[str]]":
    """Figures of the tables of a run by name."""
    figures: dict[str, Any] = {}
    sentences: list[str] = []
    for name in run.tables:
        if name == "monitor":
            curves = read_monitor(run.directory / "monitor.csv")
            if across == 1:
                figures |= monitor_figures(plt, curves)
            else:
                figures[name] = monitor_figure(plt, curves, run.title, across) if curves else None
        elif name.startswith("forces_"):
            found = forces_figure(plt, run, name.removeprefix("forces_"))
            figures[name], lines = found or (None, [])
            sentences += lines
        elif name == "permeability":
            figures[name], lines = permeability_figure(plt, run)
            sentences += lines
        elif name == "nusselt" or name.startswith("nusselt_"):
            figures[name] = nusselt_figure(plt, run, name)
        elif name == "steady":
            figures[name] = residual_figure(plt, run)
        elif name.startswith("probe_"):
            figures[name] = probe_figure(plt, run, name)
    return {name: figure for name, figure in figures.items() if figure is not None}, sentences


def pyplot() -> Any:
    """The module pyplot of Matplotlib, with a backend that needs no display."""
    try:
        import matplotlib
    except ImportError as error:
        raise CommandError(
            "plot needs matplotlib, which is not installed; pip install 'mpilbm[plot]'"
        ) from error
    matplotlib.rcdefaults()  # a file matplotlibrc in the current folder can make it start LaTeX
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({
        "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
        "text.parse_math": False,
        "figure.constrained_layout.use": True, "savefig.dpi": 150, "legend.frameon": False,
    })  # fmt: skip
    return plt


def last_snapshot(directory: Path) -> Path:
    """The snapshot of the latest step in an output folder."""
    if not isdir(directory):
        raise CommandError(f"{directory}: no such folder; name the output folder of a run")
    files = directory.glob("snapshot_[0-9]*.vtkhdf")
    last = max(files, key=lambda file: (len(file.name), file.name), default=None)
    if last is None:
        raise CommandError(
            f"{directory}: holds no snapshot_*.vtkhdf; add an [[output]] with name = 'snapshot' to "
            "the case and run it"
        )
    return last


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


DEFAULT = "u"


def draw_film(
    directory: Path | str, target: Path | str | None = None, choice: Choice | None = None
) -> Path:
    """Write `<field>.mp4`, or .gif without imageio-ffmpeg, of all snapshots; returns its path.

    The colours have the same range in all pictures. Raises CommandError if there are fewer than
    two snapshots, or no package that writes films.
    """
    plt, choice = pyplot(), choice or Choice()
    run, name, ending = open_run(directory), choice.field or DEFAULT, film.ending()
    if ending is None:
        raise CommandError(f"--{film.MISSING}")
    if len(run.steps) < 2:
        raise CommandError(
            f"{run.directory}: holds {len(run.steps)} snapshots; a film needs two or more; write "
            "snapshots more often"
        )
    paths = [run.snapshots.files[int(step)] for step in run.steps]
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

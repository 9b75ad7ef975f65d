"""A film of a field over all snapshots of a run."""

from pathlib import Path
from tempfile import TemporaryDirectory

from mpilbm.core.errors import CommandError
from mpilbm.outputs.drawing import film
from mpilbm.storage.directory import make_folder
from mpilbm.storage.files import require_replaceable
from mpilbm.view.plot.cuts import cuts_of
from mpilbm.view.plot.pictures import Choice, pyplot
from mpilbm.view.plot.slices import field_figure, limits_of, planes_of
from mpilbm.view.results.run import open_run
from mpilbm.view.results.snapshot import view

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

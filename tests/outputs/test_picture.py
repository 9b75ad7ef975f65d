"""Pictures of planes during a run, and films of them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from time import sleep

import numpy as np
import pytest
from support import image_cases

from mpilbm import CaseError, Simulation
from mpilbm.case.case import parse_case
from mpilbm.outputs.drawing import Style, default_style, figure_of

Image = pytest.importorskip("PIL.Image")

PLANE = {"name": "picture", "every": 10, "field": "u", "normal": "x", "position": 6.5,
         "label": "cut", "begin": 0}  # fmt: skip


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def test_pictures_are_drawn_behind_the_steps_and_become_a_film(tmp_path):
    outputs = [PLANE | {"film": True, "range": [0, 0.02]}, {"name": "picture", "every": 20}]
    image_cases.run(tmp_path, given=image_cases.tables(outputs=outputs))
    steps = sorted(path.name for path in tmp_path.glob("picture_cut_*.png"))
    assert steps == [f"picture_cut_{step:09d}.png" for step in (0, 10, 20)]
    assert (tmp_path / "picture_1_000000020.png").exists()
    films = list(tmp_path.glob("picture_cut.*"))
    assert [film.suffix in (".mp4", ".gif") for film in films] == [True]
    assert films[0].stat().st_size > 1000
    shapes = {pixels(tmp_path / name).shape for name in steps}
    assert len(shapes) == 1
    assert not np.array_equal(*(pixels(tmp_path / name) for name in steps[:2]))


def test_a_picture_does_not_depend_on_the_settings_of_other_figures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    settings = {"axes.spines.top": False, "savefig.dpi": 150, "font.size": 20, "lines.linewidth": 5}
    given = image_cases.tables(outputs=[PLANE])
    image_cases.run(tmp_path / "plain", given=given)
    with matplotlib.rc_context(settings):
        image_cases.run(tmp_path / "set", given=given)
    one, other = ((tmp_path / name / "picture_cut_000000010.png").read_bytes()
                  for name in ("plain", "set"))  # fmt: skip
    assert one == other


def test_a_continued_run_makes_the_film_of_all_pictures(tmp_path):
    outputs = [PLANE | {"film": True}, {"name": "checkpoint", "every": 10}]
    given = image_cases.tables(outputs=outputs)
    image_cases.run(tmp_path / "whole", given=given)
    image_cases.run(tmp_path / "cut", given=given | {"run": {"steps": 10}})
    (checkpoint,) = (tmp_path / "cut").glob("checkpoint_*")
    image_cases.run(tmp_path / "cut", given=given, restart=checkpoint)
    one, other = ({path.name: path.stat().st_size for path in (tmp_path / name).glob("picture*")}
                  for name in ("whole", "cut"))  # fmt: skip
    assert one == other


def test_the_picture_has_the_values_names_and_units_of_the_plane():
    values = np.arange(12.0).reshape(3, 4)
    solid = np.zeros((3, 4), bool)
    solid[0, 0] = True
    style = Style(title="t", axes=("x (m)", "y (m)"), label="rho (kg/m^3)", extent=(0, 4, 0, 3))
    axis, bar = figure_of(values, solid, style).axes
    image = axis.images[0]
    assert np.array_equal(image.get_array().filled(-1), np.where(solid, -1, values))
    assert image.get_clim() == (1, 11)
    assert image.get_cmap().name == "viridis"
    assert (axis.get_xlabel(), axis.get_ylabel(), bar.get_ylabel()) == (
        "x (m)", "y (m)", "rho (kg/m^3)",
    )  # fmt: skip
    signed = replace(style, signed=True)
    for one, limits, cmap, clim in (
        (signed, None, "RdBu_r", (-8, 8)),  # white is 0
        (signed, (-2, 2), "RdBu_r", (-2, 2)),
        (signed, (-1, 8), "viridis", (-1, 8)),  # the ends are given, so 0 is not in the middle
        (style, None, "viridis", (-2, 8)),
    ):
        image = figure_of(values - 3, solid, replace(one, limits=limits)).axes[0].images[0]
        assert (image.get_cmap().name, image.get_clim()) == (cmap, clim)
    image = figure_of(values - 1.01, solid, signed).axes[0].images[0]
    assert image.get_cmap().name == "viridis"  # -0.01 may be round-off


def test_a_uniform_field_and_two_dimensions(tmp_path):
    given = {
        "lattice": {"name": "D2Q9"}, "domain": {"size": [8, 6], "periodic": [True, True]},
        "fluid": {"viscosity": 0.1}, "run": {"steps": 4}, "backend": {"name": "cpu"},
        "output": [{"name": "picture", "every": 2, "field": field, "label": field}
                   for field in ("rho", "u", "vorticity")],
    }  # fmt: skip
    with Simulation(parse_case(given, "flat.toml"), directory=tmp_path) as sim:
        sim.run()
    assert len(list(tmp_path.glob("picture_*.png"))) == 6


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (PLANE | {"position": 25}, r"position: found 25; allowed: 0 to 20"),
        (PLANE | {"field": "speed"}, r"field: 'speed' is not a field"),
        (PLANE | {"range": [1, 0]}, r"range: found \[1.0, 0.0\]; allowed: the lower value first"),
    ],
)
def test_wrong_pictures_are_refused(output, message):
    with pytest.raises(CaseError, match=message):
        parse_case(image_cases.tables(outputs=[output]), "parts.toml")


def test_threads_that_draw_at_the_same_time_have_their_own_settings():
    """Each picture of a run has a thread, and Matplotlib one set of settings for all."""
    matplotlib = pytest.importorskip("matplotlib")
    both = Barrier(2)

    def draw(size):
        both.wait()
        with default_style(**{"font.size": size}):
            sleep(0.05)
            return matplotlib.rcParams["font.size"]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(draw, (7, 11))) == [7, 11]

"""A start-up spike does not flatten a curve, in pictures and in `watch`."""

import numpy as np
import pytest
from click.testing import CliRunner
from support.outputs_cases import make_case
from support.runs import run_case

from mpilbm.cli import cli
from mpilbm.outputs.drawing import Range, show_range, shown_range
from mpilbm.view.plot.pictures import pyplot

pytest.importorskip("matplotlib")
TIME = np.arange(80.0)
DRAG = np.where(TIME < 3, 81.0, 5.6)
DRAG[40:] += np.where(TIME[40:] % 2, 0.1, -0.1)


def test_the_range_is_that_of_the_last_half_if_few_points_need_much_more():
    low, high, outside, points = shown_range(TIME, [DRAG])
    assert (low, high) == pytest.approx((5.5, 5.7 + 0.2 * 5.7))  # a margin of 20 %
    assert (outside, points) == (3, 80)
    assert shown_range(TIME, [DRAG]).note == "3 of 80 points outside"


@pytest.mark.parametrize(
    "values",
    [
        3 * (1 - np.exp(-TIME / 5)),  # begins at 0 and becomes steady
        np.exp(-TIME / 20),  # a decay, most of which is in the first half
        np.sin(TIME),
        np.zeros(80),
    ],
)
def test_all_points_of_other_curves_are_shown(values):
    assert shown_range(TIME, [values]) == Range(values.min(), values.max(), 0, 80)
    assert shown_range(TIME, [values]).note == ""


def test_values_that_are_not_finite_are_not_counted():
    values = np.where(TIME == 7, np.nan, DRAG)
    assert shown_range(TIME, [values])[2:] == (3, 79)
    assert shown_range(TIME, [values * np.nan]) is None
    early = np.where(TIME < 40, DRAG, np.nan)
    assert shown_range(TIME, [early]) == Range(5.6, 81.0, 0, 40)
    assert shown_range(TIME[:1], [DRAG[:1]]) == Range(81.0, 81.0, 0, 1)


@pytest.fixture
def folder(tmp_path):
    """A run whose monitor has a spike of the largest speed."""
    run_case(make_case((5, 8), [{"name": "monitor", "every": 1}], run={"steps": 3}), tmp_path)
    path = tmp_path / "monitor.csv"
    header = path.read_text().splitlines()[0].split(",")
    rows = [
        ",".join(str(each) if name == "max_speed" else str(step) for name in header)
        for step, each in enumerate(DRAG.tolist())
    ]
    path.write_text("\n".join([",".join(header), *rows]) + "\n")
    return tmp_path


def test_pictures_say_on_the_axis_how_many_points_are_outside(folder):
    from mpilbm.view.plot.time_series import monitor_figure
    from mpilbm.view.results import open_run

    plt = pyplot()
    figure = monitor_figure(plt, dict(open_run(folder).table("monitor")), "title")
    found = {axis.get_title(): axis for axis in figure.axes}
    axis = found["max speed"]
    assert [text.get_text() for text in axis.texts] == ["3 of 80 points outside"]
    low, high = shown_range(TIME, [DRAG])[:2]
    space = 0.05 * (high - low)
    assert axis.get_ylim() == pytest.approx((low - space, high + space))
    assert not found["enstrophy"].texts
    assert found["enstrophy"].get_ylim()[1] > 79
    plt.close(figure)


@pytest.mark.parametrize(("sign", "place"), [(1, "top"), (-1, "bottom")])
def test_the_note_is_in_the_margin(sign, place):
    plt = pyplot()
    figure, axis = plt.subplots()
    show_range(axis, TIME, [sign * DRAG])
    assert [text.get_va() for text in axis.texts] == [place]
    plt.close(figure)


def test_a_narrow_terminal_shows_that_points_are_outside(folder):
    text = CliRunner().invoke(cli, ["watch", str(folder), "--once"], env={"COLUMNS": "46"}).output
    assert "max_speed = 5.7 (3 of 80 points outside)" in text


def test_watch_has_the_same_range(folder):
    text = CliRunner().invoke(cli, ["watch", str(folder), "--once"], env={"COLUMNS": "80"}).output
    lines = text.splitlines()
    (at,) = [k for k, line in enumerate(lines) if line.startswith("monitor: max_speed = 5.7")]
    assert "(3 of 80 points outside)" in lines[at]
    assert (lines[at + 1].split()[0], lines[at + 6].split()[0]) == ("5.7", "5.5")

"""Long titles are divided into lines, so that none is cut off or covers another."""

import pytest

from mpilbm.outputs.drawing import fit
from mpilbm.view.plot import panels
from mpilbm.view.plot.pictures import NARROW, Choice, draw, pyplot

pytest.importorskip("matplotlib")
LONG = "Flow of air around a heated cylinder in a channel of rock at Re = 100 and " + "W" * 80


def extents(figure):
    figure.draw_without_rendering()
    texts = [*figure.texts, *(axis.title for axis in figure.axes)]
    return [text.get_window_extent() for text in texts if text.get_text()]


@pytest.mark.parametrize("across", [1, 3])
def test_titles_are_within_the_figure_and_beside_each_other(across):
    plt = pyplot()
    figure, axes = panels(plt, 3, across, (3.0, 2.0))
    figure.suptitle(f"{LONG}\nstep 300", fontsize=10)
    for axis in axes:
        axis.plot([0, 1000])
        axis.set_title("last half: mean 5.6078, rms 0.734, Strouhal number 0.29871 ± 0.0001")
    before = figure.get_size_inches()[1]
    fit(figure)
    found = extents(figure)
    width = figure.bbox.width
    assert all(each.x0 >= 0 and each.x1 <= width for each in found)
    if across == 3:
        first, second, third = found[1:]
        assert first.x1 < second.x0 < second.x1 < third.x0
    assert figure.get_size_inches()[1] > before
    assert figure.get_suptitle().replace("\n", "").replace(" ", "") == (
        f"{LONG}step 300".replace(" ", "")
    )
    plt.close(figure)


def test_a_title_may_be_as_wide_as_its_panel():
    """The third panel is wide, so its title is not divided at a third of the figure."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), width_ratios=[1, 1, 7])
    title = "last half: mean 5.6078, rms 0.734"
    axes[2].set_title(title)
    fit(figure)
    assert axes[2].get_title() == title
    plt.close(figure)


def test_short_titles_are_unchanged():
    plt = pyplot()
    figure, (axis,) = panels(plt, 1, 1, (3.0, 2.0))
    figure.suptitle("Cavity\nstep 3")
    axis.set_title("speed")
    size = tuple(figure.get_size_inches())
    fit(figure)
    assert (figure.get_suptitle(), axis.get_title()) == ("Cavity\nstep 3", "speed")
    assert tuple(figure.get_size_inches()) == size
    plt.close(figure)


def test_pictures_of_the_page_have_one_width_and_titles_within_it(tmp_path, monkeypatch):
    from support.outputs_cases import make_case
    from support.runs import run_case

    outputs = [{"name": "snapshot", "every": 4}, {"name": "monitor", "every": 2}]
    run_case(make_case((5, 8), outputs, title=LONG, run={"steps": 4}), tmp_path)
    saved = []

    def keep(plt, figure, path, kind):
        fit(figure)
        saved.append((figure.get_size_inches()[0], figure.bbox.width, extents(figure)))
        plt.close(figure)
        return path

    monkeypatch.setattr("mpilbm.view.plot.pictures._save", keep)
    draw(tmp_path, tmp_path, choice=Choice(across=1))
    assert len(saved) == 3 + 6  # of the snapshot, and the panels of the monitor
    for inches, width, found in saved:
        assert inches == NARROW
        assert found
        assert all(each.x0 >= 0 and each.x1 <= width for each in found)

"""The planes and lines that are drawn go through bodies and through fluid."""

import numpy as np
import pytest
from support.snapshots import last_snapshot, write_snapshot

from mpilbm.view.plot import pyplot
from mpilbm.view.plot.planes import cuts_of
from mpilbm.view.plot.profiles import profile_figure
from mpilbm.view.plot.slices import field_figure
from mpilbm.view.results.snapshot import view

pytest.importorskip("matplotlib")
CASE = """
[lattice]
name = "D3Q19"
[domain]
size = [24, 12, 10]
periodic = [true, true, true]
[fluid]
viscosity = 0.1
[[body]]
mask = "rock.npy"
boundary = {name = "bounce_back"}
[run]
steps = 1
"""
SHAPE = 10, 12, 24  # z, y, x
MIDDLE = [5.0, 6.0, 12.0]  # of the planes normal to z, y, x


def ball(centre, radius):
    """The cells in a sphere; the centre along x, y, z."""
    z, y, x = np.indices(SHAPE) + 0.5
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 + (z - centre[2]) ** 2 < radius**2


@pytest.fixture
def snapshot(tmp_path):
    """A function that gives the view of a snapshot with these solid cells, which are at rest."""
    opened = []

    def of(solid):
        u = np.ones((*SHAPE, 3))
        u[solid] = 0
        write_snapshot(tmp_path, CASE, u)
        opened.append(view(last_snapshot(tmp_path)))
        return opened[-1].__enter__()

    yield of
    for each in opened:
        each.__exit__(None, None, None)


def planes(snapshot):
    return [cut.position for cut in cuts_of(snapshot)]


@pytest.mark.parametrize(
    ("solid", "found"),
    [
        (np.zeros(SHAPE, bool), MIDDLE),
        (ball((6.5, 3.5, 4.5), 2.2), [4.5, 3.5, 6.5]),
        (ball((12, 6, 5), 2.2), MIDDLE),  # between two cells, whose mean is drawn
        (ball((5.5, 6, 5), 2.2), [5.0, 6.0, 5.5]),
        # walls at all sides of a ball do not hide it
        (ball((6.5, 3.5, 4.5), 2.2) | (np.indices(SHAPE)[1] == 0), [4.5, 3.5, 6.5]),
    ],
)
def test_planes_go_through_a_body(snapshot, solid, found):
    assert planes(snapshot(solid)) == found


def test_planes_have_fluid(snapshot):
    """A block fills all planes normal to x from 9 to 15, which include the middle of the box."""
    solid = abs(np.indices(SHAPE)[2] - 11.5) < 3
    *others, x = planes(snapshot(solid))
    assert others == MIDDLE[:2]
    assert not solid[..., int(x)].any()


@pytest.mark.parametrize("radius", [3, 4.5])
def test_the_wall_of_a_pipe_is_no_body_in_it(snapshot, radius):
    """A pipe along x: the planes next to its wall have the most solid cells."""
    z, y, _ = np.indices(SHAPE) + 0.5
    assert planes(snapshot((z - 5) ** 2 + (y - 6) ** 2 > radius**2)) == MIDDLE


def test_a_body_at_one_wall_is_not_missed(snapshot):
    assert planes(snapshot(ball((6.5, 6, 0), 3.2)))[0] < 2


def test_a_narrow_panel_has_at_most_two_numbers_below_it(tmp_path):
    write_snapshot(tmp_path, CASE.replace("[24, 12, 10]", "[4, 12, 24]"), np.ones((24, 12, 4, 3)))
    plt = pyplot()
    with view(last_snapshot(tmp_path)) as shown:
        figure = field_figure(plt, shown, cuts_of(shown), "u")
    counts = []
    for axis in figure.axes[:3]:
        low, high = axis.get_xlim()
        counts.append(sum(low <= x <= high for x in axis.get_xticks()))
    assert max(counts[:2]) <= 2
    assert counts[2] > 2
    plt.close(figure)


def test_a_porous_medium_has_the_middle_planes(snapshot):
    rng = np.random.default_rng(1)
    assert planes(snapshot(rng.random(SHAPE) < 0.4)) == MIDDLE


def test_lines_go_through_fluid(snapshot):
    """The middle line along x is solid; the nearest one with the most fluid is next to it."""
    solid = np.zeros(SHAPE, bool)
    solid[4:6, 4:8] = True
    plt = pyplot()
    figure = profile_figure(plt, snapshot(solid))
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["along y = 5.5, z = 3.5", "along x = 12, z = 5", "along x = 12, y = 6"]
    for axis in figure.axes:
        assert np.isfinite(axis.lines[0].get_ydata()).any()
    plt.close(figure)

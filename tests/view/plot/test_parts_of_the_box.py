"""Plots of snapshots of a part of the box, or of means over blocks of cells."""

import numpy as np
import pytest
from click.testing import CliRunner
from support.snapshots import last_snapshot

import mpilbm
from mpilbm.cli import cli
from mpilbm.view.plot import pyplot
from mpilbm.view.plot.planes import cuts_of
from mpilbm.view.plot.profiles import centre_line, profile_figure
from mpilbm.view.plot.slices import draw_speed, field_figure, slice_figure, slice_of
from mpilbm.view.results.snapshot import view

pytest.importorskip("matplotlib")
CELL = 0.002  # m
SHEAR = 0.001  # du/dy in lattice units


def run(folder, size, units, **keys):
    """Results of a shear flow u = SHEAR y after one step, with a snapshot with `keys`.

    The periodic faces change it in the first and the last cell along y.
    """
    case = {
        "lattice": {"name": f"D{len(size)}Q{9 if len(size) == 2 else 19}"},
        "domain": {"size": list(size), "periodic": [True] * len(size)},
        "fluid": {"viscosity": 0.1},
        "backend": {"name": "cpu"},
        "run": {"steps": 1},
        "initial": {"u": [f"{SHEAR}*y", *[0] * (len(size) - 1)]},
        "output": [{"name": "snapshot", "every": 1, **keys}],
    }
    if units:
        case["units"] = {"cell": f"{CELL} m", "step": "1 s", "density": "1 kg/m^3"}
    with mpilbm.Simulation(mpilbm.load_case(case), directory=folder) as sim:
        sim.run()
    return folder


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize(
    ("keys", "x", "y"),
    [
        ({"stride": 2}, (0, 24), (0, 16)),
        ({"stride": [3, 2]}, (0, 24), (0, 16)),
        ({"stride": 3}, (0, 24), (0, 15)),  # the last row fills no block
        ({"box": [[4, 2], [20, 14]]}, (4, 20), (2, 14)),
        ({"box": [[4, 2], [20, 14]], "stride": 2}, (4, 20), (2, 14)),
    ],
)
def test_axes_are_those_of_the_box(tmp_path, keys, x, y, units):
    plt = pyplot()
    cell, length = (CELL, "m") if units else (1.0, "cells")
    with view(last_snapshot(run(tmp_path, (24, 16), units, **keys))) as snapshot:
        for figure in (
            slice_figure(plt, snapshot, draw_speed, cuts_of(snapshot)),
            field_figure(plt, snapshot, cuts_of(snapshot), "rho"),
        ):
            axis = figure.axes[0]
            assert axis.get_xlim() == pytest.approx(np.multiply(x, cell))
            assert axis.get_ylim() == pytest.approx(np.multiply(y, cell))
            assert axis.images[0].get_extent() == pytest.approx(np.multiply([*x, *y], cell))
            assert axis.get_xlabel() == f"x ({length})"
            assert axis.get_ylabel() == f"y ({length})"
            plt.close(figure)
        position, u = centre_line(snapshot, 1)
        expected = SHEAR * position / cell
        assert np.allclose(u[1:-1, 0] / snapshot.velocity, expected[1:-1], rtol=1e-3)
        figure = profile_figure(plt, snapshot)
        assert figure.axes[1].get_xlim() == pytest.approx(np.multiply(y, cell))
        plt.close(figure)
        *_, vorticity = slice_of(snapshot, cuts_of(snapshot)[0])
        assert np.allclose(vorticity[2:-2], -SHEAR, rtol=1e-2)  # 1 / s, with steps of 1 s


def test_planes_are_found_by_their_position(tmp_path):
    with view(last_snapshot(run(tmp_path, (8, 12, 6), True, stride=2))) as snapshot:
        for text in ("y=6.5", "y=13 mm"):
            (cut,) = cuts_of(snapshot, text)
            assert cut.cells == slice(3, 4)
            assert cut.position == pytest.approx(0.013)
            u = cut.mean(snapshot.u)[..., 0]
            assert np.allclose(u, SHEAR * 7 * CELL, rtol=1e-3)
        with pytest.raises(mpilbm.CommandError, match="x=0 to 8, y=0 to 12, z=0 to 6"):
            cuts_of(snapshot, "y=12.5")
        middle = cuts_of(snapshot)[1]  # normal to y
        assert middle.position == pytest.approx(6 * CELL)
        assert middle.cells == slice(2, 4)


@pytest.mark.parametrize("size", [(9, 12), (9, 12, 7)])
def test_commands_accept_a_stride(tmp_path, size):
    folder = run(tmp_path / "run", size, False, stride=2)
    for name in ("plot", "report"):
        result = CliRunner().invoke(cli, [name, str(folder)])
        assert result.exit_code == 0, result.output
    assert "the last snapshot" in (folder / "report.html").read_text()
    assert not mpilbm.open_run(folder).solid().any()
    assert mpilbm.open_run(folder).solid().shape == mpilbm.open_run(folder).field("rho").shape

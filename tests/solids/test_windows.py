"""Windows: which cells of a slab they hold, and where."""

import numpy as np
import pytest
from support.slabs import box

from mpilbm.case.case import parse_case
from mpilbm.layouts.grid import LINE
from mpilbm.parallel import slabs
from mpilbm.solids.build import build
from mpilbm.solids.windows import UNCUT, Window, covered, windows_of

SHAPE = 9, 12, 10
FACES = [
    {"name": "equilibrium", "where": ["x-"], "velocity": [0.05, 0, 0]},
    {"name": "characteristic", "where": ["x+"], "rho": 1.0},
    {"name": "equilibrium", "where": ["y-", "y+", "z+"], "velocity": [0.05, 0, 0]},
    {"name": "bounce_back", "where": ["z-"]},
]


@pytest.mark.parametrize(
    "window", [Window(0, 4, 0, 9), Window(1, 4, 5, 12), Window(2, 0, 6, 10), Window(0, 4, 4, 9)]
)
def test_cells_keep_their_values(window):
    """`places` and `of` agree, for all cells of the slab; `cut` leads back to the slab."""
    cells = np.arange(np.prod(SHAPE))
    inside, there = window.places(cells, SHAPE)
    found = window.of(cells.reshape(SHAPE))
    assert found.shape[window.axis] == window.size
    assert inside.sum() == found.size
    assert np.array_equal(found.reshape(-1)[there[inside]], cells[inside])
    cut, name = window.cut(ghost=2), ("plane", "row", "x")[window.axis]
    assert cut.pop(f"skipped_{name}") == window.skipped
    assert cut.pop(f"cut_{name}") == window.lower + 2 * (window.axis == 0)
    assert set(cut.values()) == {0, UNCUT}


def case_tables(faces, periodic=(False, False, False)):
    tables = box("D3Q19", (24, 12, 18), boundary=faces, layout={"name": "moments"})
    tables |= {"collision": {"name": "regularized"}}
    tables["domain"]["periodic"] = list(periodic)
    return tables


def case_of(*given):
    return parse_case(case_tables(*given), "test.toml")


def test_windows_of_slabs():
    """Depths follow from what boundaries read, and even numbers along x.

    Walls and mirrors need no window.
    """
    case = case_of(FACES)
    lower, upper = slabs.split(case.shape, 2, False)
    rows, x = Window(1, 4, 4, 12), Window(2, 4, 6, 24)
    assert windows_of(case, lower) == (rows, x)
    assert windows_of(case, upper) == (Window(0, 0, 4, 9), rows, x)
    for name in "bounce_back", "free_slip":
        walls = [{"name": name, "where": [axis + side for axis in "xyz" for side in "-+"]}]
        assert windows_of(case_of(walls), lower) == ()


@pytest.mark.parametrize("storage", ["float32", "float16", "mixed"])
def test_short_rows_share_lines(storage):
    """Rows of the window across x begin at multiples of 16 bytes, others at lines."""
    tables = {"precision": {"compute": "float32", "storage": storage}}
    case = parse_case(case_tables(FACES) | tables, "test.toml")
    (slab,) = slabs.split(case.shape, 1, False)
    _, rows, x = (window.grid(case, slab, 1) for window in windows_of(case, slab))
    assert (x.nx, x.row_stride, x.slot_stride % LINE) == (10, 16, 0)
    assert x.slot_stride >= x.rows * x.row_stride
    assert rows.nx == 24
    assert rows.row_stride % LINE == 0


def test_entries_are_those_of_the_cells_in_the_window():
    case = case_of(FACES)
    (slab,) = slabs.split(case.shape, 1, False)
    lists = [each for each in build(case, slab).lists if each.boundary.name != "bounce_back"]
    shape = slab.planes, *slab.shape[1:]
    windows = windows_of(case, slab)
    assert covered(windows, lists, shape, frozenset())
    assert not covered(windows[1:], lists, shape, frozenset())
    for window in windows:
        numbers = window.of(np.arange(np.prod(shape)).reshape(shape)).reshape(-1)
        for each in lists:
            mine = window.entries(each, shape)
            kept = np.isin(each.cells, numbers)
            assert np.array_equal(numbers[mine.cells], each.cells[kept])
            assert (np.diff(mine.cells) >= 0).all()
            for inner, outer in zip(mine.inward, each.inward, strict=True):
                assert np.array_equal(numbers[inner.cells], outer.cells[kept])

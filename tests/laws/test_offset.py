"""Populations as such and as deviations from rest: the same flow, but for rounding."""

import h5py
import numpy as np
import pytest
from support.faces import closed, on_faces, table
from support.outputs_cases import make_case
from support.settings import SETTINGS
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.core.registry import find, names
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run

WHOLE = {"offset": False}


def pairs_of(every: list[str]) -> list[tuple[str, str]]:
    """Each name once, in pairs; a last one without a partner is paired with the first."""
    return [(name, (every[k + 1 :] or every)[0]) for k, name in enumerate(every) if k % 2 == 0]


@pytest.mark.parametrize("layout", names("layouts"))
def test_it_does_not_show_in_float64(layout):
    """Inflow, outflow, a moving body and a force."""
    tables = SETTINGS["forced"]("D2Q9") | SETTINGS["through"]("D2Q9")
    tables |= {"layout": {"name": layout}, "collision": {"name": "regularized"}}
    with_offset, without = (
        Cluster(box("D2Q9", precision=PRECISIONS["double"] | offset, **tables), 2).start().run(9)
        for offset in ({}, WHOLE)
    )
    expected = with_offset.fields("rho", "u", "vorticity")
    for name, values in without.fields(*expected).items():
        assert np.abs(values - expected[name]).max() < 1e-14
    np.testing.assert_allclose(without.sums()[1], with_offset.sums()[1], 1e-12, 1e-14)


@pytest.mark.parametrize("names", pairs_of(on_faces()), ids="-".join)
def test_no_boundary_shows_it(names):
    """Two faces of each that meet, beside a force; one with `rho` where that may be given."""
    walls = []
    for name, (first, second) in zip(names, (("x-", "y-"), ("x+", "y+")), strict=True):
        more = {"rho": 1.01} if "rho" in find("boundaries", name).model_fields else {}
        walls += [table(name, first, D=2), table(name, second, D=2, **more)]
    tables = closed("D2Q9", [7, 6], walls, force={"name": "guo", "value": [1e-3, 2e-3]})
    with_offset, without = (
        Cluster(tables | {"precision": PRECISIONS["double"] | offset}).start().run(6)
        for offset in ({}, WHOLE)
    )
    expected = with_offset.fields("rho", "u")
    for key, values in without.fields("rho", "u").items():
        assert np.abs(values - expected[key]).max() < 1e-13


def vortex(precision, offset, N=32, U=0.005, steps=1000):
    """rho - 1 and u of a Taylor-Green vortex."""
    rho = f"1 - 0.75*{U}**2*(cos(4*pi*x/nx) + cos(4*pi*y/ny))"
    u = [f"-{U}*cos(2*pi*x/nx)*sin(2*pi*y/ny)", f"{U}*sin(2*pi*x/nx)*cos(2*pi*y/ny)"]
    case = box("D2Q9", [N, N], precision=PRECISIONS[precision] | offset)
    fields = Cluster(case | {"initial": {"rho": rho, "u": u}}).start().run(steps).fields("rho", "u")
    return fields["rho"].astype(float) - 1, fields["u"].astype(float)


@pytest.mark.parametrize("precision", ["single", "mixed"])
def test_deviations_keep_digits(precision):
    """The density most of all. [paper: Januszewski & Kostur 2014, figure 6]"""
    expected = vortex("double", {})
    errors = [
        [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, expected, strict=True)]
        for found in (vortex(precision, {}), vortex(precision, WHOLE))
    ]
    (rho, u), (rho_whole, u_whole) = errors
    assert rho_whole > 50 * rho
    assert u_whole > 3 * u


def test_from_the_case_to_its_files(tmp_path):
    """What snapshots and the monitor hold, and a restart, in float32 without offset."""
    outputs = [{"name": "checkpoint", "every": 10}, {"name": "snapshot", "every": 30},
               {"name": "monitor", "every": 5}]  # fmt: skip
    shear = {"u": ["0.05*sin(2*pi*y/ny)", "0.02*cos(2*pi*x/nx)"]}
    found = {}
    for offset in (True, False):
        more = {"initial": shear, "fluid": {"viscosity": 0.1}, "precision": {"offset": offset}}
        for steps in (20, 30):
            case = make_case((7, 6), outputs, run={"steps": steps}, **more)
            restart = {"restart": "auto"} if steps == 30 else {}
            run(case, Serial(), tmp_path / str(offset), **restart)
        with h5py.File(tmp_path / str(offset) / "snapshot_000000030.vtkhdf") as file:
            data = file["VTKHDF/CellData"]
            found[offset] = data["rho"][...], data["u"][...]
        rows = (tmp_path / str(offset) / "monitor.csv").read_text().splitlines()
        masses = [float(row.split(",")[2]) for row in rows[1:]]
        assert masses == pytest.approx([42] * len(masses), rel=1e-6)
    for whole, stored in zip(found[False], found[True], strict=True):
        assert np.abs(whole - stored).max() < 2e-6
        assert not np.array_equal(whole, stored)

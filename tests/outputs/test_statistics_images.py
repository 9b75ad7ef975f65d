"""Statistics as VTKHDF: read by VTK, equal to the plain files, in SI with [units]."""

import h5py
import numpy as np
import pytest
from support.host_samples import by_vtk

from mpilbm.case.case import parse_case
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.view.results.tables import read_table

SIZES = {2: [6, 5], 3: [6, 5, 4]}


def flow(D, averages, **more):
    wave = "0.02*sin(2*pi*(x/nx + 2*y/ny))"
    return parse_case(
        {
            "lattice": {"name": "D3Q19" if D == 3 else "D2Q9"},
            "domain": {"size": SIZES[D], "periodic": [True] * D},
            "fluid": {"viscosity": 0.1},
            "initial": {"u": [wave, *["0.01*cos(2*pi*x/nx)"] * (D - 1)]},
            "run": {"steps": 4},
            "backend": {"name": "cpu"},
            "output": [
                {"name": "statistics", "every": 2, "average": list(a), "format": "both"}
                for a in averages
            ],
        }
        | more
    )


@pytest.mark.parametrize(("D", "average"), [(3, a) for a in ("", "x", "yz", "xyz")] + [
    (2, a) for a in ("", "x", "y")])  # fmt: skip
def test_an_image_holds_the_fields_of_the_plain_file(tmp_path, D, average):
    run(flow(D, [average]), Serial(), tmp_path)
    axes = "".join(a for a in "xyz"[:D] if a not in average) or "all"
    name = f"statistics_{axes}_000000004"
    spacing, found = by_vtk(tmp_path / f"{name}.vtkhdf")
    expected = [1 if a not in average else n for a, n in zip("xyz", SIZES[D], strict=False)]
    assert list(spacing) == [*expected, 1.0][:3]
    with h5py.File(tmp_path / f"{name}.h5") as file:
        shape = found["rho"].shape
        assert np.array_equal(found["rho"].ravel(), file["rho"][()].ravel())
        assert np.array_equal(found["pressure"].ravel(), file["pressure"][()].ravel())
        assert file["pressure"][()] == pytest.approx((file["rho"][()] - 1) / 3, abs=1e-12)
        assert np.array_equal(found["u"][..., :D].ravel(), file["u"][()].ravel())
        assert not found["u"][..., D:].any()
        pairs = list(file.attrs["reynolds_stress"])
        stress = file["reynolds_stress"][()].reshape(*shape, len(pairs))
        for k, pair in enumerate(pairs):
            assert np.array_equal(found[f"reynolds_stress_{pair}"], stress[..., k])
        assert abs(stress).max() > 1e-9


def test_an_image_is_in_si(tmp_path):
    units = {"cell": "2 mm", "step": "1 ms", "density": "1000 kg/m^3"}
    run(flow(3, ["xz"], units=units), Serial(), tmp_path)
    spacing, found = by_vtk(tmp_path / "statistics_y_000000004.vtkhdf")
    assert spacing == pytest.approx((0.012, 0.002, 0.008))
    with h5py.File(tmp_path / "statistics_y_000000004.h5") as file:
        assert found["u"][0, :, 0] == pytest.approx(file["u"][()] * 2)
        stress = file["reynolds_stress"][()]
        assert found["reynolds_stress_xx"][0, :, 0] == pytest.approx(stress[:, 0] * 4)


def test_only_the_files_that_are_wanted(tmp_path):
    outputs = [
        {"name": "statistics", "every": 2, "average": ["x"], "format": "vtkhdf"},
        {"name": "statistics", "every": 2, "average": ["y"]},
    ]
    run(flow(3, [], output=outputs), Serial(), tmp_path)
    assert sorted(path.name for path in tmp_path.glob("statistics*")) == [
        "statistics_xz_000000004.h5",
        "statistics_yz_000000004.vtkhdf",
    ]


def test_the_mean_pressure_is_in_pascal(tmp_path):
    """p = cs2 (rho - rho_0) in the table, in lattice units and in SI."""
    units = {"cell": "2 mm", "step": "1 ms", "density": "1000 kg/m^3"}
    run(flow(2, ["x"], units=units), Serial(), tmp_path)
    table = read_table(tmp_path / "statistics_y_000000004.csv")
    lattice = table["pressure (rho_0 cells^2/step^2)"]
    assert lattice == pytest.approx((table["rho"] - 1) / 3, abs=1e-12)
    assert abs(lattice).max() > 1e-7
    assert table["pressure (Pa)"] == pytest.approx(lattice * 1000 * 2**2, rel=1e-12)
    with h5py.File(tmp_path / "statistics_y_000000004.h5") as file:
        assert file["pressure"].attrs["unit"] == "Pa"
        assert np.array_equal(file["pressure"][()], lattice)

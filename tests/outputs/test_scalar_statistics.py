"""Means, variances and turbulent fluxes of scalars, compared with those of stored fields."""

import csv

import h5py
import numpy as np
import pytest
from support.runs import run_case
from support.scalars import carried, flow, setting
from support.slabs import Cluster

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.view.results.tables import read_profile

AXES = {(False, False): None, (True, False): (0, 3), (False, True): (0, 2)}
NAMES = ("flux_T", "variance_T", "flux_S", "variance_S", "covariance_T_S")


def tables(lattice, layout="ab", least=300, **more):
    tables = flow(lattice, layout, **setting("walls", int(lattice[1])))
    start = {"value": f"0.1*x + {least}"}
    tables["scalar"] = [*tables["scalar"], carried("S", 0.05, initial=start)]
    samples = {"name": "statistics", "every": 1}
    return tables | {"output": [samples], "backend": {"name": "cpu"}} | more


def expected(history, axes):
    """The results from u (samples, z, y, x, D), T and S; without axes those of cells."""
    axes = axes or (0,)
    mean = {name: values.mean(axes, keepdims=True) for name, values in history.items()}
    d = {name: values - mean[name] for name, values in history.items()}
    found = {label: mean[label] for label in "TS"}
    for label in "TS":
        found[f"flux_{label}"] = (d["u"] * d[label][..., None]).mean(axes)
        found[f"variance_{label}"] = (d[label] ** 2).mean(axes)
    found["covariance_T_S"] = (d["T"] * d["S"]).mean(axes)
    return found


@pytest.mark.parametrize("along", AXES, ids=str)
@pytest.mark.parametrize(("lattice", "layout"), [("D2Q9", "esopull"), ("D3Q19", "aa")])
def test_results_are_those_of_the_fields(lattice, layout, along):
    if lattice == "D2Q9" and along == (False, True):
        pytest.skip("a plane has one row in 2D")
    found = {}
    for slabs in (1, 2):
        cluster, history = Cluster(tables(lattice, layout), slabs).start(), []
        sums = cluster.each(lambda solver: solver.statistics(*along))
        for _ in range(10):
            for each in sums:
                each.sample()
            fields = cluster.fields("u", "T", "S")
            history.append(fields)
            cluster.run(1)
        parts = [each.moments(0, each.planes).fields(("T", "S")) for each in sums]
        found[slabs] = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    stacked = {name: np.stack([h[name] for h in history]).astype(float) for name in history[0]}
    wanted = expected(stacked, AXES[along])
    for name in NAMES:
        assert np.array_equal(found[1][name], found[2][name])
        want = wanted[name].reshape(found[1][name].shape)
        assert np.abs(want).max() > 1e-9
        assert np.allclose(found[1][name], want, rtol=1e-9, atol=1e-13)


def test_files_of_profiles_and_cells(tmp_path):
    outputs = [
        {"name": "statistics", "every": 2, "average": ["x"], "format": "both"},
        {"name": "statistics", "every": 2, "format": "both"},
        {"name": "checkpoint", "every": 4},
    ]
    for name, stops in {"whole": [8], "parts": [4, 8]}.items():
        for steps in stops:
            given = tables("D2Q9", least=3, output=outputs, run={"steps": steps})
            case = parse_case(given, "flow.toml")
            more = {"restart": "auto"} if (name, steps) == ("parts", 8) else {}
            run_case(case, tmp_path / name, **more)
    profile = read_profile(tmp_path / "whole" / "statistics_y_000000008.h5", "y")
    assert profile.fluxes["T"].shape == (len(profile.position), 2)
    assert (profile.variances["T"] > 0).all()
    assert np.allclose(profile.scalars["S"], 3.25, atol=0.5)
    with (tmp_path / "whole" / "statistics_y_000000008.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["flux_T_y"]) for row in rows] == profile.fluxes["T"][:, 1].tolist()
    for stem in ("statistics_y_000000008", "statistics_xy_000000008"):
        with h5py.File(tmp_path / "whole" / f"{stem}.h5") as file:
            assert set(NAMES) < set(file)
        with h5py.File(tmp_path / "whole" / f"{stem}.vtkhdf") as file:
            assert {"T", *NAMES} < set(file["VTKHDF/CellData"])
        for suffix in ("h5", "vtkhdf"):
            group = {"h5": "/", "vtkhdf": "VTKHDF/CellData"}[suffix]
            paths = (tmp_path / name / f"{stem}.{suffix}" for name in ("whole", "parts"))
            whole, parts = (h5py.File(path)[group] for path in paths)
            for name in whole:
                assert np.array_equal(whole[name][()], parts[name][()], equal_nan=True)


def test_names_that_two_results_would_have():
    given = tables("D2Q9")
    given["scalar"] = [carried("T"), carried("flux_T")]
    del given["buoyancy"]
    with pytest.raises(CaseError, match="two results have the name 'flux_T'"):
        parse_case(given, "flow.toml")

"""Means and Reynolds stresses: those of the fields themselves, and the same after a restart."""

import h5py
import numpy as np
import pytest
from support.outputs_cases import flip_bit, offset_of
from support.sampled_flows import FLOWS, KINDS, means, sampled
from support.slabs import Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError
from mpilbm.parallel.ranks import Serial
from mpilbm.run.preflight.plan import plan
from mpilbm.run.run import run
from mpilbm.solver.fields import flow_statistics
from mpilbm.solver.fields.flow_statistics import Moments, merged, products_of, shifted

AVERAGES = {
    "D3Q19": ["", "x", "y", "z", "xy", "xz", "yz", "xyz"],
    "D2Q9": ["", "x", "y", "xy"],
}


def flow(lattice, outputs, layout="ab", steps=9, body=True, **more):
    D = 3 if lattice == "D3Q19" else 2
    ball = {"name": "sphere", "centre": [2, 2, 6][-D:], "radius": 1.6}
    solid = {"body": [{"label": "ball", "shape": ball, "boundary": {"name": "bounce_back"}}]}
    tables = box(lattice, layout={"name": layout}, output=outputs, **solid if body else {}, **more)
    return parse_case(tables | {"run": {"steps": steps}, "backend": {"name": "cpu"}}, "flow.toml")


def statistics(average, **more):
    return {"name": "statistics", "every": 3, "begin": 1, "average": list(average)} | more


def datasets(path):
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}, dict(file.attrs)


def expected(folder, D, average, steps=(3, 6, 9)):
    """Means and stresses by NumPy, from snapshots."""
    rho, u, solid = [], [], []
    for step in steps:
        with h5py.File(folder / f"snapshot_{step:09d}.vtkhdf") as file:
            cells = file["VTKHDF/CellData"]
            rho.append(cells["rho"][()].astype(float))
            u.append(cells["u"][()].astype(float)[..., :D])
            solid.append(cells["solid"][()] != 0)
    axes = (0, *(3 - "xyz".index(a) for a in average + "z" * (D == 2)))
    values = np.concatenate([np.stack(rho)[..., None], np.stack(u)], axis=-1)
    hidden = np.broadcast_to(np.stack(solid)[..., None], values.shape)
    data = np.ma.masked_array(values, hidden)
    mean = data.mean(axis=axes, keepdims=True)
    stress = np.ma.masked_invalid(products_of((data - mean)[..., 1:].filled(np.nan)))
    stress = stress.mean(axis=axes).filled(np.nan)
    mean = mean.filled(np.nan).reshape((*stress.shape[:-1], 1 + D))
    return {"rho": mean[..., 0], "u": mean[..., 1:], "reynolds_stress": stress}


@pytest.mark.parametrize("layout", ["ab", "indirect"])
@pytest.mark.parametrize("lattice", AVERAGES)
def test_means_and_stresses_are_those_of_the_fields(tmp_path, lattice, layout):
    outputs = [{"name": "snapshot", "every": 3}, *map(statistics, AVERAGES[lattice])]
    run(flow(lattice, outputs, layout), Serial(), tmp_path)
    D = 3 if lattice == "D3Q19" else 2
    for average in AVERAGES[lattice]:
        left = "".join(a for a in "xyz"[:D] if a not in average) or "all"
        found, head = datasets(tmp_path / f"statistics_{left}_000000009.h5")
        assert (head["samples"], head["first_step"]) == (3, 3)
        for name, values in expected(tmp_path, D, average).items():
            allowed = 1e-13 if name == "rho" else 1e-15
            np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=allowed)
        assert np.nanmax(found["reynolds_stress"][..., 0]) > 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flow", FLOWS)
def test_a_sample_adds_the_fields_of_all_layouts(flow, kind):
    """After odd and even numbers of steps, with and without solid cells; two slabs."""
    cluster, found = Cluster(FLOWS[flow](), 2).start(), []
    kept = sampled(cluster, kind, 3, lambda one: found.append(one.fields("rho", "u")))
    values = np.stack([np.concatenate([f["rho"][..., None], f["u"]], axis=-1) for f in found])
    solid = np.concatenate(cluster.each(lambda s: s.solid(0, s.slab.planes)))
    data = np.ma.masked_array(values, np.broadcast_to(solid[..., None], values.shape))
    data = data.astype(float)
    axes = {"cells": (0,), "columns": (0, 2), "rows": (0, 3)}[kind]
    if values.shape[2] == 1 and kind == "columns":
        axes = (0,)
    mean = data.mean(axis=axes, keepdims=True)
    products = products_of((data - mean)[..., 1:].filled(0)).sum(axis=axes)
    parts = [each.moments(0, each.planes) for each in kept]
    moments = Moments(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    mean = mean.filled(0).reshape(moments.mean.shape)
    np.testing.assert_allclose(np.where(moments.n, moments.mean, 0), mean, rtol=0, atol=1e-14)
    expected = products.reshape(moments.products.shape)
    np.testing.assert_allclose(moments.products, expected, rtol=1e-9, atol=1e-14)
    assert expected.max() > 1e-6


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("flow", ["two arrays", "nodes", "planes of a row", "two fluids"])
def test_samples_of_cells_are_added_one_after_another(flow, most, monkeypatch):
    """The sums are those of NumPy in every bit, however many samples are kept."""
    monkeypatch.setattr(flow_statistics, "MOST", most)
    cluster, found = Cluster(FLOWS[flow]()).start(), []
    (kept,) = sampled(cluster, "cells", 5, lambda one: found.append(one.fields("rho", "u")))
    values = [np.concatenate([f["rho"][..., None], f["u"]], axis=-1) for f in found]
    solid = cluster.solvers[0].solid(0, kept.planes)
    state = kept.read(0, kept.planes)[:, : kept.places.count * kept.columns]
    state = state.reshape(*values[0].shape[:-1], kept.columns)
    sums = np.zeros_like(state[~solid])
    for each in values:
        d = (each.astype(float) - values[0])[~solid]
        sums += np.concatenate([d, products_of(d[:, 1:])], axis=-1)
    assert np.array_equal(state[~solid], sums)
    assert not state[solid].any()


@pytest.mark.parametrize("flow", FLOWS)
def test_the_device_computes_the_means_of_cells(flow):
    """With every bit of NumPy's, not a number in solids alone; two slabs."""
    cluster = Cluster(FLOWS[flow](), 2).start()
    for solver, kept in zip(cluster.solvers, sampled(cluster, "cells", 3), strict=True):
        found, expected = means(solver, kept), kept.moments(0, kept.planes).fields()
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert np.array_equal(found[name], values, equal_nan=True), name
        assert np.array_equal(np.isnan(found["rho"]), solver.solid(0, kept.planes))
        assert np.nanmax(found["reynolds_stress"][..., 0]) > 1e-9


@pytest.mark.parametrize("flow", ["two arrays", "nodes", "planes of a row"])
def test_the_device_merges_the_cells_of_planes(flow):
    """With every bit of NumPy's, from one slab to the next."""
    cluster = Cluster(FLOWS[flow](), 2).start()
    found, expected = None, None
    for kept in sampled(cluster, "cells", 3):
        found = kept.over_planes(found)
        for plane in range(kept.planes):
            expected = merged(kept.moments(plane, plane + 1), 0, expected)
        for one, other in zip(found, expected, strict=True):
            assert np.array_equal(one, other)
    assert found.n.max() > 3 * kept.planes
    assert found.products.max() > 1e-6


def test_sums_with_another_shift():
    d, by = np.random.default_rng(3).standard_normal((2, 7, 4))
    sums = [
        np.concatenate([(d + a).sum(axis=0), products_of((d + a)[:, 1:]).sum(axis=0)])
        for a in (0, by[0])
    ]
    np.testing.assert_allclose(shifted(sums[0], by[0], 7), sums[1], rtol=1e-13)


def test_sums_of_a_run_of_another_precision():
    """Whose shifts have more digits: the sums are converted to shifts in float32."""
    cluster = Cluster(FLOWS["two arrays"]()).start()
    (kept,) = sampled(cluster, "cells", 2)
    (again,) = cluster.each(lambda s: s.statistics(*KINDS["cells"]))
    state, expected = kept.read(0, kept.planes), kept.moments(0, kept.planes)
    cut = kept.places.count * kept.columns
    by = np.full((kept.planes, kept.places.count, kept.shifts), 1e-9)
    sums = state[:, :cut].reshape(*by.shape[:2], -1)
    sums = shifted(sums, by, 2).reshape(kept.planes, -1)
    again.write(np.concatenate([sums, state[:, cut:] - by.reshape(kept.planes, -1)], axis=1), 2)
    found = again.moments(0, kept.planes)
    for name in ("mean", "products"):
        fluid = np.broadcast_to(expected.n > 0, getattr(expected, name).shape)
        values = (getattr(moments, name)[fluid] for moments in (found, expected))
        np.testing.assert_allclose(*values, rtol=0, atol=1e-14)


def test_a_profile_is_also_text(tmp_path):
    run(flow("D2Q9", [statistics("x", write=6)]), Serial(), tmp_path)
    assert len(list(tmp_path.glob("statistics_y_*.csv"))) == 2
    header, *rows = (tmp_path / "statistics_y_000000009.csv").read_text().splitlines()
    assert header == (
        "y (cells),rho,u_x (cells/step),u_y (cells/step),"
        "<u_x' u_x'> (cells^2/step^2),<u_x' u_y'> (cells^2/step^2),"
        "<u_y' u_y'> (cells^2/step^2),pressure (rho_0 cells^2/step^2)"
    )
    found, _ = datasets(tmp_path / "statistics_y_000000009.h5")
    table = np.array([[float(value) for value in row.split(",")] for row in rows])
    assert np.array_equal(table[:, 0], found["y"])
    assert np.array_equal(table[:, 2:4], found["u"], equal_nan=True)
    assert np.array_equal(table[:, 4:7], found["reynolds_stress"], equal_nan=True)
    assert np.array_equal(table[:, 7], found["pressure"], equal_nan=True)


@pytest.mark.parametrize("average", ["xy", "xz", "z"])
def test_a_restart_goes_on_with_the_same_sums(tmp_path, average):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    outputs = [statistics(average), {"name": "checkpoint", "every": 4}]
    run(flow("D3Q19", outputs), Serial(), whole)
    run(flow("D3Q19", outputs, steps=4), Serial(), parts)
    run(flow("D3Q19", outputs), Serial(), parts, restart="auto")
    left = "".join(a for a in "xyz" if a not in average)
    with h5py.File(parts / "checkpoint_000000009.h5") as file:
        stored = file[f"statistics.{left}/sums"].nbytes
    assert flow("D3Q19", outputs).outputs[0].kept_bytes(flow("D3Q19", outputs)) == stored
    one, two = (datasets(folder / f"statistics_{left}_000000009.h5") for folder in (whole, parts))
    assert one[1]["samples"] == two[1]["samples"] == 3
    assert all(np.array_equal(one[0][name], two[0][name], equal_nan=True) for name in one[0])


def test_damaged_sums_are_seen_before_a_checkpoint_is_chosen(tmp_path, capsys):
    outputs = [statistics("xy"), {"name": "checkpoint", "every": 4}]
    run(flow("D3Q19", outputs, steps=8), Serial(), tmp_path)
    path = tmp_path / "checkpoint_000000008.h5"
    flip_bit(path, offset_of(path, "statistics.z/sums") + 8)
    with pytest.raises(CaseError, match=r"is damaged: bytes .* have a wrong checksum"):
        run(flow("D3Q19", outputs), Serial(), tmp_path, restart=path)
    run(flow("D3Q19", outputs), Serial(), tmp_path, restart="auto")
    assert "continuing from step 4" in capsys.readouterr().err
    assert datasets(tmp_path / "statistics_z_000000009.h5")[1]["samples"] == 3


def test_statistics_without_saved_sums_are_reported(tmp_path, capsys):
    checkpoints = {"name": "checkpoint", "every": 4}
    run(flow("D3Q19", [checkpoints], steps=4), Serial(), tmp_path)
    later = [checkpoints, {**statistics("xy"), "begin": 5}]
    run(flow("D3Q19", later), Serial(), tmp_path, restart="auto")
    assert "holds no sums" not in capsys.readouterr().err
    run(flow("D3Q19", [checkpoints], steps=4), Serial(), tmp_path, overwrite=True)
    run(flow("D3Q19", [checkpoints, statistics("xy")]), Serial(), tmp_path, restart="auto")
    expected = "holds no sums for statistics.z: its samples begin after step 4, not at step 1"
    assert expected in capsys.readouterr().err


def test_stresses_keep_their_digits_beside_a_large_mean():
    """A fluctuation of 1e-6 on a mean of 0.1: sums of squares would lose eight digits."""
    u = 0.1 + 1e-6 * np.random.default_rng(1).standard_normal((200, 3))
    parts = Moments(np.ones((200, 1)), np.pad(u, ((0, 0), (1, 0))), np.zeros((200, 6)))
    found = merged(parts, 0).fields()["reynolds_stress"]
    exact = products_of(u - u.mean(axis=0)).mean(axis=0)
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ([statistics("xw")], r"average: found \['x', 'w'\]; allowed: some of x, y, z"),
        ([statistics("xz")], "average: found 'z' in 2D"),
        ([statistics("x", write=4)], "write: found 4; allowed: a multiple of every = 3"),
        ([statistics("x"), statistics("x")], "average: two statistics of the same directions"),
    ],
)
def test_what_is_refused(outputs, sentence):
    with pytest.raises(CaseError, match=sentence):
        flow("D2Q9", outputs)


def test_the_plan_counts_samples_and_not_files():
    lines = plan(flow("D2Q9", [statistics("x")])).sections["disk"]
    assert [line.verdict for line in lines if line.what == "statistics"] == ["3 samples, every 3"]

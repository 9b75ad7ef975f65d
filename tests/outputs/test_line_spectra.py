"""Spectra and correlations of lines: of known waves, of the fields of snapshots, and refusals."""

import numpy as np
import pytest
from support.host_samples import datasets, flow, samples

from mpilbm.core.errors import CaseError
from mpilbm.outputs.line_spectra import LineSpectra
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run


def spectra(average, **more):
    return {"name": "line_spectra", "every": 2, "average": list(average), "label": "s"} | more


def correlations(values, axis, axes):
    """<q'(x) q'(x + r)> by NumPy, from shifted fields; `axes` are averaged."""
    d = values - values.mean(axis=axes, keepdims=True)
    lags = range(values.shape[axis] // 2 + 1)
    return np.stack([(d * np.roll(d, -r, axis)).mean(axis=axes) for r in lags], axis=-2)


@pytest.mark.parametrize(
    ("lattice", "average"), [("D3Q19", a) for a in ("x", "y", "xy", "xz", "xyz")] + [("D2Q9", "x")]
)
def test_correlations_are_those_of_the_fields(tmp_path, lattice, average):
    case = flow([spectra(average)], lattice)
    run(case, Serial(), tmp_path)
    found, head = datasets(tmp_path / "line_spectra_s_000000008.h5")
    assert head["samples"] == 4
    D = case.dimensions
    values, _ = samples(tmp_path, D, (2, 4, 6, 8))
    axes = (0, *(3 - "xyz".index(a) for a in average), *([1] * (D == 2)))
    lines = [a for a in average if a != "xyz"[D - 1]]
    assert lines == list(case.outputs[1].directions(case))
    for a in lines:
        expected = correlations(values, 3 - "xyz".index(a), axes)
        n = case.domain.size["xyz".index(a)]
        for name, data in (("rho", expected[..., 0]), ("u", expected[..., 1:])):
            correlation, energy = found[f"correlation_{a}_{name}"], found[f"spectrum_{a}_{name}"]
            assert correlation.shape == data.shape
            np.testing.assert_allclose(correlation, data, rtol=0, atol=1e-9 * abs(data).max())
            along = data.ndim - 1 if name == "rho" else data.ndim - 2
            variance = correlation.take(0, along)
            np.testing.assert_allclose(energy.sum(axis=along), variance, rtol=1e-6, atol=1e-15)
        assert abs(expected).max() > 1e-6
        assert found[f"k_{a}"] == pytest.approx(2 * np.pi * np.arange(n // 2 + 1) / n)
        assert found[f"r_{a}"][-1] == n // 2


@pytest.mark.parametrize("n", [12, 13])
def test_a_wave_has_one_mode(n):
    """Energy A^2 / 2 at its wave number, the correlation is a cosine, the mean adds nothing."""
    sums = LineSpectra(4, n, 2, (True, True), ("x",))
    state = np.zeros(sums.values)
    wave = 0.3 * np.sin(2 * np.pi * 5 * np.arange(n) / n + np.arange(4)[:, None])
    for _ in range(3):
        sums.add(state, np.stack([wave, 7 + wave, np.full((4, n), 2.0)]), None)
    found = sums.results(state)
    energy = np.zeros(n // 2 + 1)
    energy[5] = 0.3**2 / 2
    np.testing.assert_allclose(found["spectrum_x_rho"], energy, atol=1e-15)
    np.testing.assert_allclose(found["spectrum_x_u"][:, 0], energy, atol=1e-13)
    assert abs(found["spectrum_x_u"][:, 1]).max() < 1e-15
    cosine = 0.045 * np.cos(2 * np.pi * 5 * np.arange(n // 2 + 1) / n)
    np.testing.assert_allclose(found["correlation_x_rho"], cosine, atol=1e-15)


def test_a_restart_has_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    outputs = [spectra("xy"), {"name": "checkpoint", "every": 4}]
    case = flow(outputs)
    run(case, Serial(), whole)
    run(flow(outputs, steps=4), Serial(), parts)
    run(case, Serial(), parts, restart="auto")
    one, two = (datasets(folder / "line_spectra_s_000000008.h5") for folder in (whole, parts))
    assert all(np.array_equal(one[0][name], two[0][name]) for name in one[0])
    kept = datasets_of_checkpoint(whole / "checkpoint_000000008.h5")
    assert kept == case.outputs[1].kept_bytes(case)


def datasets_of_checkpoint(path):
    import h5py

    with h5py.File(path) as file:
        return file["line_spectra.s/sums"].nbytes


def test_other_keys_after_a_restart_are_reported(tmp_path, capsys):
    checkpoint = {"name": "checkpoint", "every": 4}
    run(flow([spectra("xy"), checkpoint], steps=4), Serial(), tmp_path)
    run(flow([spectra("x"), checkpoint]), Serial(), tmp_path, restart="auto")
    assert "holds no sums for line_spectra.s" in capsys.readouterr().err
    assert datasets(tmp_path / "line_spectra_s_000000008.h5")[1]["samples"] == 2


BALL = {
    "label": "ball",
    "shape": {"name": "sphere", "centre": [4, 3, 2], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}
WALLS = {
    "domain": {"size": [8, 6, 5], "periodic": [False, True, True]},
    "boundary": [{"name": "bounce_back", "where": ["x-", "x+"]}],
}


@pytest.mark.parametrize(
    ("lattice", "output", "more", "sentence"),
    [
        ("D3Q19", spectra("xz", lines=["z"]), {}, "'z', along which the box is divided among"),
        ("D3Q19", spectra("z"), {}, "needed: at least one of x and y"),
        ("D3Q19", spectra("x", lines=["y"]), {}, "'y', which is not homogeneous"),
        ("D3Q19", spectra("x", lines=["x", "x"]), {}, "each direction once"),
        ("D3Q19", spectra("x", lines=["q"]), {}, "found 'q'; allowed: x and y"),
        ("D2Q9", spectra("y"), {}, "needed: at least one of x"),
        ("D3Q13", spectra("x"), {}, "stores every other node"),
        ("D3Q19", spectra("x"), {"body": [BALL]}, "lines through bodies have no spectrum"),
        ("D3Q19", spectra("x"), WALLS, "'x' is not periodic"),
    ],
)
def test_what_is_refused(lattice, output, more, sentence):
    with pytest.raises(CaseError, match=sentence):
        flow([output], lattice, "esopull", **more)

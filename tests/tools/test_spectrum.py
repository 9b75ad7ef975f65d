"""tools/spectrum on fields whose spectrum is known."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from support.outputs_cases import make_case, make_context

from mpilbm.outputs.snapshot import Snapshot

TOOL = Path(__file__).parents[2] / "tools" / "spectrum"


@pytest.fixture
def spectrum(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL.parent))
    return import_module("spectral_balance").spectrum


def wave(size, numbers):
    """cos of a wave with so many periods along x, y(, z), in cell centres."""
    phase = 0
    for axis, (n, count) in enumerate(zip(size, numbers, strict=True)):
        x = 2 * np.pi * count * (np.arange(n) + 0.5) / n
        phase = phase + x.reshape([-1 if k == axis else 1 for k in (2, 1, 0)])
    return np.cos(phase)


@pytest.mark.parametrize("size", [(12, 12, 12), (11, 8, 16), (12, 12), (15, 20)])
def test_waves_stand_in_their_shells(spectrum, size):
    """Amplitude a: energy a^2 / 4, in the shell of its wave number in units of 2 pi / longest."""
    D, dk = len(size), 2 * np.pi / max(size)
    u = np.zeros((*(*size, 1)[:3][::-1], 3))
    expected = {}
    for component, numbers, a in [(1, (2, 0, 0), 0.1), (0, (0, 3, 0), 0.2), (1, (1, -2, 0), 0.3)]:
        u[..., component] += a * wave(size, numbers[:D])
        length = np.linalg.norm([n * max(size) / s for n, s in zip(numbers, size, strict=False)])
        shell = int(np.rint(length))
        expected[shell] = expected.get(shell, 0) + a * a / 4
    u[..., 0] += 0.5
    expected[0] = 0.125
    k, E = spectrum(u, size)
    np.testing.assert_allclose(k, dk * np.arange(len(k)))
    for shell, value in enumerate(E * dk):
        assert value == pytest.approx(expected.get(shell, 0), abs=1e-16)


@pytest.mark.parametrize("size", [(5, 4, 7), (6, 8, 4), (5, 6)])
def test_its_integral_is_the_kinetic_energy(spectrum, size):
    D = len(size)
    u = np.random.default_rng(3).standard_normal((*(*size, 1)[:3][::-1], 3))
    k, E = spectrum(u, size)
    assert E.sum() * k[1] == pytest.approx((u[..., :D] ** 2).sum(axis=-1).mean() / 2, rel=1e-13)


@pytest.mark.parametrize("size", [(35, 20, 49), (34, 51, 18), (27, 22)])
def test_every_wave_is_counted_once(spectrum, size):
    """As in the sum over all waves, of which none is left out; from single precision too."""
    shape, dk = (*size, 1)[2::-1], 2 * np.pi / max(size)
    u = np.random.default_rng(5).standard_normal((*shape, 3)).astype(np.float32)
    u[..., 0] += 30
    waves = np.fft.fftn(u[..., : len(size)].astype(float), axes=(0, 1, 2)) / np.prod(shape)
    axes = np.meshgrid(*(np.fft.fftfreq(n) for n in shape), indexing="ij")
    numbers = np.rint(np.sqrt(sum(axis**2 for axis in axes)) * max(size)).astype(int)
    expected = np.bincount(numbers.ravel(), (np.abs(waves) ** 2).sum(axis=-1).ravel() / 2 / dk)
    k, E = spectrum(u, size)
    np.testing.assert_allclose(k, dk * np.arange(len(expected)))
    np.testing.assert_allclose(E, expected, rtol=1e-9)


def run(path):
    return subprocess.run([sys.executable, TOOL, path], capture_output=True, text=True, timeout=200)


def test_the_command_writes_a_table_and_refuses_walls(tmp_path):
    context = make_context(tmp_path, make_case((5, 6)))
    Snapshot(every=1, background=False).open(context).write(1)
    done = run(tmp_path / "snapshot_000000001.vtkhdf")
    assert done.returncode == 0, done.stderr
    header, *rows = (tmp_path / "snapshot_000000001_spectrum.csv").read_text().splitlines()
    assert header == "k (1/cell),E (cells^3/step^2)"
    k, E = np.array([[float(value) for value in row.split(",")] for row in rows]).T
    u = context.solver.fields(("u",), 0, 6)["u"].astype(float)
    assert E.sum() * k[1] == pytest.approx((u**2).sum(axis=-1).mean() / 2, rel=1e-12)
    walls = [{"name": "bounce_back", "where": ["x-", "x+", "y-", "y+"]}]
    case = make_case((5, 6), domain={"size": [5, 6]}, boundary=walls)
    Snapshot(every=1, background=False).open(make_context(tmp_path, case)).write(2)
    done = run(tmp_path / "snapshot_000000002.vtkhdf")
    assert done.returncode == 1
    assert "the box has walls or bodies" in done.stderr
    assert "no such file" in run(tmp_path / "nothing.vtkhdf").stderr.lower()

"""Skewness, flatness and extrema: those of known signals and of the fields of snapshots."""

import numpy as np
import pytest
from support.host_samples import by_vtk, datasets, flow, samples

from mpilbm.backends.cpu import Cpu
from mpilbm.backends.cpu.kernels import Stream
from mpilbm.core.errors import CaseError
from mpilbm.outputs.higher_moments import HigherMoments
from mpilbm.parallel.ranks import Serial
from mpilbm.run.run import run
from mpilbm.solver.fields import sources
from mpilbm.solver.fields.sources import SlabCopies
from mpilbm.storage.background import Background

BALL = {
    "label": "ball",
    "shape": {"name": "sphere", "centre": [4, 3, 2], "radius": 1.6},
    "boundary": {"name": "bounce_back"},
}


def higher(average, **more):
    return {"name": "higher_moments", "every": 2, "average": list(average), "label": "m"} | more


def expected(values, solid, axes):
    """By NumPy, from all samples at once."""
    hidden = np.broadcast_to(solid[None, ..., None], values.shape)
    data = np.ma.masked_array(values, hidden)
    mean = data.mean(axis=axes, keepdims=True)
    power = {k: ((data - mean) ** k).mean(axis=axes).filled(np.nan) for k in (2, 3, 4)}
    found = {
        "": mean.squeeze(axes).filled(np.nan),
        "_variance": power[2],
        "_skewness": power[3] / power[2] ** 1.5,
        "_flatness": power[4] / power[2] ** 2,
        "_min": data.min(axis=axes).filled(np.nan),
        "_max": data.max(axis=axes).filled(np.nan),
    }
    return {
        q + name: part
        for name, data in found.items()
        for q, part in (("rho", data[..., 0]), ("u", data[..., 1:]))
    }


@pytest.mark.parametrize(
    ("lattice", "layout", "average", "body"),
    [("D3Q19", "ab", a, a == "xz") for a in ("", "x", "xz", "y", "z", "xyz")]
    + [("D3Q19", "indirect", "xz", True), ("D3Q19", "aa", "x", False)]
    + [("D2Q9", "esopull", a, False) for a in ("x", "y")],
)
def test_moments_are_those_of_the_fields(tmp_path, lattice, layout, average, body):
    more = {"body": [BALL]} if body else {}
    run(flow([higher(average, write=4)], lattice, layout, **more), Serial(), tmp_path)
    D = 2 if lattice == "D2Q9" else 3
    assert (tmp_path / "higher_moments_m_000000004.h5").is_file()
    found, head = datasets(tmp_path / "higher_moments_m_000000008.h5")
    assert (head["samples"], head["first_step"]) == (4, 2)
    axes = (0, *(3 - "xyz".index(a) for a in average), *([1] * (D == 2)))
    for name, data in expected(*samples(tmp_path, D, (2, 4, 6, 8)), axes).items():
        rho = name.startswith("rho")
        if name.endswith(("skewness", "flatness")):
            kept = expected(*samples(tmp_path, D, (2, 4, 6, 8)), axes)
            large = kept["rho_variance" if rho else "u_variance"] > 1e-10
            found_, data = found[name][large], data[large]
            np.testing.assert_allclose(found_, data, rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_allclose(found[name], data, rtol=1e-9, atol=1e-13, err_msg=name)


def test_a_staggered_lattice_has_moments_of_rows(tmp_path):
    run(flow([higher("xy")], "D3Q13", "esopull", collision={"name": "mrt"}), Serial(), tmp_path)
    found, _ = datasets(tmp_path / "higher_moments_m_000000008.h5")
    assert found["rho"].shape == (6,)
    assert np.all(found["u_min"] <= found["u"])
    assert np.all(found["u_flatness"][:, 0] > 1)


def test_known_signals_have_their_moments():
    """A sine: flatness 1.5; the powers of an exponential distribution: skewness 2, flatness 9."""
    rng, sums = np.random.default_rng(5), HigherMoments(64, 128, 2, (True, True))
    state = np.zeros(sums.values)
    for _ in range(40):
        sine = np.sin(2 * np.pi * (np.arange(128) + rng.random()) / 128) * np.ones((64, 1))
        plane = np.stack(
            [rng.normal(0, 1e-3, (64, 128)), 1e3 + sine, rng.exponential(1, (64, 128))]
        )
        sums.add(state, plane, None)
    found = sums.results(state)
    assert found["rho"] == pytest.approx(1, abs=1e-5)
    assert found["rho_flatness"] == pytest.approx(3, rel=0.02)
    assert found["u_variance"][0] == pytest.approx(0.5, rel=1e-9)
    assert found["u_flatness"][0] == pytest.approx(1.5, rel=1e-9)
    assert abs(found["u_skewness"][0]) < 1e-6
    assert found["u_skewness"][1] == pytest.approx(2, rel=0.02)
    assert found["u_flatness"][1] == pytest.approx(9, rel=0.08)


def test_a_restart_has_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    outputs = [higher("xz"), {"name": "checkpoint", "every": 4}]
    run(flow(outputs), Serial(), whole)
    run(flow(outputs, steps=4), Serial(), parts)
    run(flow(outputs), Serial(), parts, restart="auto")
    one, two = (datasets(folder / "higher_moments_m_000000008.h5") for folder in (whole, parts))
    assert one[1]["samples"] == two[1]["samples"] == 4
    assert all(np.array_equal(one[0][name], two[0][name], equal_nan=True) for name in one[0])


def test_samples_are_those_of_the_window(tmp_path):
    case = flow([higher("xyz", begin=4, end=6)])
    run(case, Serial(), tmp_path)
    found, head = datasets(tmp_path / "higher_moments_m_000000008.h5")
    assert (head["samples"], head["first_step"]) == (2, 4)
    assert case.outputs[1].samples(8) == 2
    values, _ = samples(tmp_path, 3, (4, 6))
    assert found["u"] == pytest.approx(values[..., 1:].mean(axis=(0, 1, 2, 3)), rel=1e-9)


def test_units_are_attributes(tmp_path):
    import h5py

    units = {"cell": "2 mm", "step": "1 ms", "density": "1000 kg/m^3"}
    run(flow([higher("xz")], units=units), Serial(), tmp_path)
    with h5py.File(tmp_path / "higher_moments_m_000000008.h5") as file:
        for name, unit, value in (
            ("u_variance", "m^2/s^2", 4),
            ("rho_min", "kg/m^3", 1000),
            ("y", "m", 0.002),
        ):
            assert file[name].attrs["unit"] == unit
            assert file[name].attrs["lattice unit"] == pytest.approx(value)


@pytest.mark.parametrize(
    ("lattice", "output", "sentence"),
    [
        ("D2Q9", higher("xz"), "average: found 'z' in 2D"),
        ("D3Q19", higher("xw"), r"average: found \['x', 'w'\]"),
        ("D3Q19", higher("x", write=3), "write: found 3; allowed: a multiple of every = 2"),
        ("D3Q19", higher("x", begin=6, end=4), "end: found 4; allowed: 6 = begin or later"),
        ("D3Q13", higher("y"), "add 'x'"),
    ],
)
def test_what_is_refused(lattice, output, sentence):
    with pytest.raises(CaseError, match=sentence):
        flow([output], lattice, "esopull")


@pytest.mark.parametrize(("lattice", "average"), [("D3Q19", a) for a in ("x", "xz")] + [
    ("D2Q9", "x")])  # fmt: skip
def test_an_image_holds_the_fields_of_the_plain_file(tmp_path, lattice, average):
    units = {"cell": "2 mm", "step": "1 ms", "density": "1000 kg/m^3"}
    outputs = [higher(average, format="both")]
    run(flow(outputs, lattice, units=units), Serial(), tmp_path)
    found, _ = datasets(tmp_path / "higher_moments_m_000000008.h5")
    _, image = by_vtk(tmp_path / "higher_moments_m_000000008.vtkhdf")
    D = found["u"].shape[-1]
    assert image.keys() == found.keys() - set("xyz")
    factors = {"u_max": 2, "u_variance": 4, "rho_min": 1000, "u_flatness": 1, "rho_skewness": 1}
    for name, factor in factors.items():
        data = image[name][..., :D] if name.startswith("u") else image[name]
        np.testing.assert_allclose(data.ravel(), found[name].ravel() * factor, rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_few_blocks_of_memory_delay_but_do_not_change(tmp_path, monkeypatch, threads):
    """A slow device with two blocks, which snapshots and checkpoints use at the same time."""
    outputs = [higher("xz"), higher("y", label="y"), {"name": "checkpoint", "every": 2}]
    run(flow(outputs), Serial(), tmp_path / "plain")
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1)
    monkeypatch.setattr(Background, "threads", threads)
    opened, made = Cpu.open, SlabCopies.__init__

    def slow(backend, *args, **more):
        device = opened(backend, *args, **more)
        device.unified, device.new_stream = False, Stream
        return device

    def few(copies, *args, **more):
        made(copies, *args, **more)
        for pool in (copies.staging.on_device, copies.staging.on_host):
            pool.most = 2
        copies.staging.ahead = 1

    monkeypatch.setattr(Cpu, "open", slow)
    monkeypatch.setattr(SlabCopies, "__init__", few)
    run(flow(outputs), Serial(), tmp_path / "few")
    for name in ("higher_moments_m", "higher_moments_y", "checkpoint"):
        file = f"{name}_000000008.h5"
        assert (tmp_path / "plain" / file).read_bytes() == (tmp_path / "few" / file).read_bytes()


def test_an_error_of_a_thread_ends_the_run(tmp_path, monkeypatch):
    def fail(sums, one, other):
        raise MemoryError("in a thread")

    monkeypatch.setattr(HigherMoments, "merge", fail)
    with pytest.raises(BaseException, match="in a thread"):
        run(flow([higher("xz")]), Serial(), tmp_path)
    assert not list(tmp_path.glob("higher_moments*"))

"""The random initial velocity: divergence, spectrum, speed, and independence of the slabs."""

import numpy as np
import pytest
from support.slabs import PRECISIONS, Cluster, box

from mpilbm.case.case import parse_case
from mpilbm.core.errors import CaseError

FLOW = {"speed": 0.05, "peak": 2.5, "seed": 7}
SIZES = {"D2Q9": (32, 24), "D3Q19": (24, 16, 20), "D3Q13": (24, 16, 20)}


def initial(lattice, size, **flow):
    collision = {"name": "mrt" if lattice == "D3Q13" else "bgk"}
    more = {"precision": PRECISIONS["double"], "collision": collision}
    domain = {"size": list(size), "periodic": [True] * len(size)}
    return box(lattice, size, domain=domain, initial={"random": FLOW | flow}, **more)


def velocity(lattice, size, **flow):
    """u (planes, rows, nx, D) of the whole box."""
    case = parse_case(initial(lattice, size, **flow), "a.toml")
    return case.fluids[0].initial.evaluate(case.shape, 0, case.shape[0])[1]


def waves(u, size):
    """Fourier coefficients (…, D) and wave vectors (…, D) in waves per longest side."""
    u = u.reshape(*size[::-1], len(size))
    axes = tuple(range(len(size)))
    numbers = [np.fft.fftfreq(n) * max(size) for n in size[::-1]]
    k = np.stack(np.meshgrid(*numbers, indexing="ij")[::-1], axis=-1)
    return np.fft.fftn(u, axes=axes, norm="forward"), k


@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19"])
def test_divergence_spectrum_and_speed(lattice):
    size = SIZES[lattice]
    u = velocity(lattice, size)
    assert np.sqrt((u**2).sum(axis=-1).mean()) == pytest.approx(0.05, rel=1e-12)
    assert np.abs(u.mean(axis=(0, 1, 2))).max() < 1e-16
    found, k = waves(u, size)
    assert np.abs((k * found).sum(axis=-1)).max() < 1e-16
    length = np.sqrt((k**2).sum(axis=-1))
    energy = np.bincount(np.rint(length).astype(int).ravel(), (abs(found) ** 2).sum(-1).ravel() / 2)
    n = np.arange(9)
    wanted = n**4 * np.exp(-2 * (n / 2.5) ** 2)
    inside = np.flatnonzero(energy[:9] > 1e-20)
    wanted = wanted * np.isin(n, inside)
    assert {*range(1, 7)} <= {*inside}
    assert energy[:9] == pytest.approx(wanted / wanted.sum() * 0.05**2 / 2, rel=1e-10, abs=1e-18)


def test_the_longest_wave_vectors_have_three_times_the_length_of_the_peak():
    size = SIZES["D2Q9"]
    found, k = waves(velocity("D2Q9", size, peak=2), size)
    length, amplitude = np.sqrt((k**2).sum(axis=-1)), np.abs(found).max(axis=-1)
    assert amplitude[length == 6].min() > 1e-10
    assert amplitude[length > 6].max() < 1e-16


def test_the_flow_does_not_depend_on_the_number_of_cells():
    """The same waves on a finer grid."""
    coarse, fine = ((24, 16, 20), (48, 32, 40))
    one, _ = waves(velocity("D3Q19", coarse), coarse)
    two, _ = waves(velocity("D3Q19", fine), fine)
    half = [0.5 / n for n in coarse], [0.5 / n for n in fine]
    for m in ((1, 0, 2), (-2, 1, 0), (3, -1, 1)):
        a, b = (
            each[m[2], m[1], m[0]]
            * np.exp(-2j * np.pi * sum(m_a * h for m_a, h in zip(m, shift, strict=True)))
            for each, shift in zip((one, two), half, strict=True)
        )
        assert a == pytest.approx(b, rel=1e-10, abs=1e-15)
        assert np.abs(a).max() > 1e-6


@pytest.mark.parametrize("lattice", SIZES)
def test_any_number_of_slabs_begins_alike(lattice):
    tables = initial(lattice, SIZES[lattice])
    one, three = (Cluster(tables, n).start().run(2).state() for n in (1, 3))
    assert np.array_equal(one, three)
    other = Cluster(initial(lattice, SIZES[lattice], seed=8)).start().run(2).state()
    assert not np.array_equal(one, other)


def test_a_staggered_lattice_has_the_values_of_its_nodes():
    size = SIZES["D3Q13"]
    every, some = velocity("D3Q19", size), velocity("D3Q13", size)
    plane, row, k = np.ogrid[: size[2], : size[1], : size[0] // 2]
    assert np.array_equal(some, every[plane, row, 2 * k + (plane + row) % 2])
    assert np.sqrt((some**2).sum(axis=-1).mean()) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"domain": {"size": [32, 24], "periodic": [True, False]}},
            r"initial.random: found domain.periodic = \[true, false\]; allowed: boxes that are per",
        ),
        (
            {"initial": {"random": FLOW | {"peak": 6}}},
            r"initial.random.peak: found 6; allowed: below 5.333, a sixth of the longest side",
        ),
        (
            {"initial": {"random": FLOW, "u": [0, 0]}},
            r"initial: has random and u; both give the velocity; remove one",
        ),
        (
            {"initial": {"random": FLOW, "file": "a.npz"}},
            r"initial: has random and file; both give the velocity; remove one",
        ),
        ({"initial": {"random": FLOW | {"peak": 0.5}}}, r"initial.random.peak: found 0.5"),
        ({"initial": {"random": {"peak": 2}}}, r"initial.random.speed: "),
    ],
)
def test_what_is_refused(change, sentence):
    with pytest.raises(CaseError, match=sentence):
        parse_case(initial("D2Q9", (32, 24)) | change, "a.toml")


def test_a_flow_that_is_too_fast_is_refused():
    case = parse_case(initial("D2Q9", (32, 24), speed=0.5), "a.toml")
    with pytest.raises(CaseError, match=r"initial.random: .* above the speed .*; lower its speed"):
        case.fluids[0].initial.evaluate(case.shape, 0, 24)

"""The H function: its minimiser, the step that leaves it as it is, flows in which it must fall."""

import ctypes

import numpy as np
import pytest
from support.case_tables import BASE, changed, tables
from support.findings import warnings_of
from support.pairs import defined
from support.slabs import PRECISIONS, Cluster

from mpilbm import codegen
from mpilbm.backends.cpu import compiler
from mpilbm.case.case import parse_case
from mpilbm.core.registry import make, names
from mpilbm.physics.collisions import unnamed
from mpilbm.physics.collisions.entropic import relaxation

pytestmark = pytest.mark.usefixtures("stand_ins")

LATTICES = [name for name in names("lattices") if defined(name, "entropic")]
over_lattices = pytest.mark.parametrize("lattice", LATTICES)
DIRECTION = np.array([0.5, -0.3, 0.8])
EXACT = ("D2Q9", "D3Q27")


def data(lattice):
    one = make("lattices", lattice)
    return one, np.array(one.c, float), np.array(one.w, float)


def feq(one, u) -> np.ndarray:
    return np.array(make("equilibria", "entropic").feq(one, 1.0, 1.0, [float(v) for v in u]))


def minimiser(c, w, u) -> np.ndarray:
    """Of H at rho = 1 and u, by Newton's method for its multipliers."""
    multipliers = 3 * u
    for _ in range(20):
        f = w * np.exp(c @ multipliers)
        f /= f.sum()
        slope = (c.T * f) @ c - np.outer(f @ c, f @ c)
        multipliers = multipliers + np.linalg.solve(slope, u - f @ c)
    return f


@over_lattices
def test_equilibrium_minimises_h(lattice):
    one, c, w = data(lattice)
    errors = []
    for speed in (0.05, 0.1):
        u = speed * DIRECTION[: one.D]
        errors.append(np.abs(feq(one, u) / minimiser(c, w, u) - 1).max())
    if lattice in EXACT:
        assert max(errors) < 1e-14
    else:
        assert errors[1] < 5e-5
        assert np.log2(errors[1] / errors[0]) > 4.8  # of fifth order in u


@over_lattices
def test_no_digit_of_a_small_push_is_lost(lattice):
    one, _, _ = data(lattice)
    u, push = 0.1 * DIRECTION[: one.D], np.array([1e-9, 2e-9, -3e-9])[: one.D]
    jump = make("equilibria", "entropic").jump
    small, large = (np.array(jump(one, 1.0, list(u), list(k * push))) for k in (1, 1e6))
    whole = feq(one, u + 1e6 * push) - feq(one, u)
    assert large == pytest.approx(whole, abs=1e-15)
    slopes = (np.array(jump(one, 1.0, list(u), list(k * push / 1e3))) * 1e3 / k for k in (1, -1))
    assert small == pytest.approx(sum(slopes) / 2, rel=1e-8)
    assert abs(small.sum()) < 1e-8 * np.abs(small).max()


def states(lattice, amplitude, count=30):
    """Full populations and what they differ by from their equilibrium."""
    one, c, w = data(lattice)
    rng = np.random.default_rng(3)
    for _ in range(count):
        f = w * np.exp(amplitude * rng.standard_normal(one.Q))
        rho = f.sum()
        yield f, f - rho * feq(one, f @ c / rho)


def H(f, w) -> float:  # noqa: N802
    return (f * np.log(f / w)).sum()


def alpha_of(f, d) -> float:
    return float(relaxation(list(map(float, f)), list(map(float, d)), 1.0, unnamed))


@pytest.mark.parametrize("amplitude", [1e-4, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("lattice", EXACT)
def test_alpha_leaves_h_as_it_is(lattice, amplitude):
    """In both branches, against bisection; near equilibrium differences of H hold few digits."""
    _, _, w = data(lattice)
    for f, d in states(lattice, amplitude):
        low, high = 1.0, min(3.0, (1 - 1e-9) / (d / f).max())
        for _ in range(60):
            alpha = (low + high) / 2
            low, high = (alpha, high) if H(f - alpha * d, w) < H(f, w) else (low, alpha)
        assert alpha_of(f, d) == pytest.approx(low, abs=1e-4 if amplitude < 1e-3 else 3e-5)


@over_lattices
def test_populations_stay_positive(lattice):
    for f, d in states(lattice, 0.7):
        assert (f - d).min() > 0
        alpha = alpha_of(f, d)
        assert alpha >= 1
        assert (f - alpha * d).min() > 0
    d[1] -= 2 * f[1]
    f[1] = -f[1]
    assert alpha_of(f, d) == 1  # on to equilibrium


LAYER = "0.1*tanh(80*where(y<ny/2, y/ny - 0.25, 0.75 - y/ny))"


def layer(lattice, collision, precision="double", viscosity=1e-5) -> Cluster:
    """Shear layers thinner than a cell, a Reynolds number above 10^5."""
    D = make("lattices", lattice).D
    u = [LAYER, "0.01*sin(2*pi*x/nx)", "0.01*sin(2*pi*(x/nx + z/nz))"]
    case = {
        "lattice": {"name": lattice},
        "collision": {"name": collision},
        "domain": {"size": [24, 22, 10][:D], "periodic": [True] * D},
        "precision": PRECISIONS[precision],
        "fluid": {"viscosity": viscosity},
        "initial": {"u": u[:D]},
        "run": {"steps": 1},
    }
    return Cluster(case).start()


def whole(cluster) -> np.ndarray:
    w = np.array(cluster.case.lattice.w, float)
    return cluster.state().astype(float) + w[:, None, None]


@pytest.mark.parametrize(
    ("lattice", "precision", "steps"),
    [("D2Q9", "single", [1] * 100 + [100] * 12), ("D3Q19", "double", [1] * 100)],
)
@pytest.mark.usefixtures("optimised")
def test_h_never_grows(lattice, precision, steps):
    """Long after bgk has died in this flow, on D2Q9."""
    w = np.array(make("lattices", lattice).w, float)[:, None, None]
    cluster, before = layer(lattice, "entropic", precision), np.inf
    for some in steps:
        f = whole(cluster.run(some))
        assert f.min() > 0
        assert H(f, w) < before
        before = H(f, w)
    if sum(steps) == 1300:
        assert not np.isfinite(layer(lattice, "bgk", precision).run(1300).state()).all()


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q27"])
def test_kbc_survives_as_well(lattice):
    """Its gamma makes H least to leading order alone: H may grow, and does in this flow."""
    f = whole(layer(lattice, "kbc").run(1300))
    assert np.isfinite(f).all()


@pytest.mark.parametrize("lattice", EXACT)
def test_kbc_makes_h_least(lattice):
    """Along h, after a step: beside the derivative of H along h, that of its change is large."""
    one, c, w = data(lattice)
    kbc = make("collisions", "kbc")
    for f, d in states(lattice, 1e-4, 5):
        rho, u = f.sum(), f @ c / f.sum()
        left = [
            np.array(kbc.collide(one, list(f), rho, rho, list(u), None, {"beta": beta}), float)
            for beta in (0.9, 0.5)
        ]
        assert left[1] == pytest.approx(f - d, abs=1e-12)  # beta = 1/2: equilibrium
        s = shear_of(one, c, d)
        h = d - s
        slope = (h * np.log(left[0] / w)).sum()
        assert abs(slope) < 1e-3 * np.sqrt((h**2 / w).sum() * (d**2 / w).sum())
        assert c.T @ left[0] == pytest.approx(c.T @ f, abs=1e-14)


def shear_of(one, c, d) -> np.ndarray:
    """The part of d in which no moment but the deviatoric stress differs from zero, by solving."""
    powers = np.array(np.meshgrid(*[range(3)] * one.D)).reshape(one.D, -1).T
    M = np.array([np.prod(c**n, axis=1) for n in powers])
    m = M @ d
    order = powers.sum(axis=1)
    squares = (order == 2) & (powers.max(axis=1) == 2)
    m[squares] -= m[squares].mean()
    m[order != 2] = 0
    return np.linalg.solve(M, m)


def loops(value, a, b):
    """A value of kernels for all a[i] and b[i], in vectors and one by one."""
    case = parse_case(
        tables(precision={"compute": str(a.dtype), "storage": str(a.dtype)}), "test.toml"
    )
    head = codegen.generate(case).text.partition("/* D3Q19")[0]
    each = [f"for (int i = 0; i < n; i++) {part}[i] = {value};" for part in ("y", "z")]
    parameters = "const real* a, const real* b, real* y, real* z, int n"
    text = f'{head}\nvoid run({parameters}) {{\n_Pragma("omp simd")'
    text += f'{each[0]}\n_Pragma("GCC novector")\n{each[1]}\n}}\n'
    library, y, z = (
        ctypes.CDLL(str(compiler.find().build(text))),
        np.zeros_like(a),
        np.zeros_like(a),
    )
    library.run(*(v.ctypes.data_as(ctypes.c_void_p) for v in (a, b, y, z)), len(a))
    return y, z


@pytest.mark.parametrize("compute", ["float32", "float64"])
def test_logarithms_of_kernels(compute):
    """Relative error of log2(1 + x), x of all sizes; the same bits alone and in whole vectors."""
    small = np.geomspace(1e-30, 0.5, 500)
    x = np.concatenate([small, -small, [0, 1, 10, 1e6], small - 0.999]).astype(compute)
    y, z = loops("LOG2_1P(a[i])", x, x)
    exact = np.log1p(x.astype(np.longdouble)) / np.log(np.longdouble(2))
    assert np.array_equal(y, z)
    assert np.all(np.abs(y - exact) <= 4 * np.finfo(compute).eps * np.abs(exact))


@pytest.mark.parametrize("compute", ["float32", "float64"])
def test_quotients_of_kernels(compute):
    """Within three units in the last place of a / b; the same bits alone and in whole vectors."""
    rng = np.random.default_rng(1)
    b = np.concatenate([2.0 ** rng.uniform(-99, 99, 2000), rng.uniform(0.5, 4, 2000)])
    a, b = (rng.standard_normal(b.size) * b).astype(compute), b.astype(compute)
    y, z = loops("QUOTIENT(a[i], b[i])", a, b)
    assert np.array_equal(y, z)
    exact = a.astype(np.longdouble) / b.astype(np.longdouble)
    assert np.all(np.abs(y - exact) <= 3 * np.finfo(compute).eps * np.abs(exact))


def test_kbc_divides_by_no_population():
    """By rho, by the roots of the equilibrium, and once for the ratio, however many directions."""
    kbc = tables(collision={"name": "kbc"}, lattice={"name": "D3Q27"}, layout={"name": "ab"})
    text = codegen.generate(parse_case(kbc, "test.toml")).text
    step = text.partition("void collide_stream_0_at(")[2].partition("\n}")[0]
    assert step.count("DIVIDE(") + step.count("QUOTIENT(") == 3


ENTROPIC = BASE.replace("[run]", '[collision]\nname = "entropic"\n[run]')


def test_what_is_not_defined_is_refused():
    parse_case(tables(ENTROPIC), "box.toml")
    assert changed("force", {"name": "guo", "value": [0, 0, 1e-6]}, ENTROPIC) == [
        "collision: entropic does not support the force 'guo'; allowed: exact_difference"
    ]
    assert changed("collision.equilibrium", {"name": "compressible"}, ENTROPIC) == [
        "collision.equilibrium: found 'compressible', but entropic does not support it; "
        "allowed: entropic"
    ]
    assert changed("layout", {"name": "moments"}, ENTROPIC)[0].startswith("layout.name: 'moments'")
    assert changed("collision.name", "kbc", ENTROPIC) == [
        "collision: kbc is not defined on D3Q19; allowed: D2Q9, D3Q27"
    ]


def test_intrinsics_are_of_float32_and_of_gpus():
    (problem,) = changed("precision", {"intrinsics": True, "compute": "float64"}, ENTROPIC)
    assert problem.startswith('precision: intrinsics = true requires compute = "float32"')
    quick = {"precision": {"intrinsics": True}}
    assert warnings_of(parse_case(tables(ENTROPIC, **quick), "box.toml")) == ()
    case = parse_case(tables(ENTROPIC, **quick, backend={"name": "cpu"}), "box.toml")
    assert warnings_of(case) == ("precision.intrinsics: has no effect on a CPU; remove it",)

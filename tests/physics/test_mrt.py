"""Moments and their rates: the published bases, `bgk` and `trt` as special cases, bad rates."""

from fractions import Fraction
from math import gcd
from random import Random

import numpy as np
import pytest
from support.case_tables import BASE, changed, tables
from support.waves import Waves

from mpilbm.case.case import parse_case
from mpilbm.core.registry import make
from mpilbm.physics.collisions.mrt import DEFAULTS, MRT, rate_of
from mpilbm.physics.lattices.basis import basis

pytestmark = pytest.mark.usefixtures("stand_ins")

over_lattices = pytest.mark.parametrize("lattice", DEFAULTS)
BY_SPEED = {  # of |c|^2 = 0, 1, 2, 3
    "D2Q9": {"e": (-4, -1, 2), "eps": (4, -2, 1)},  # [Lallemand & Luo 2000]
    "D3Q13": {"e": (-12, None, 1)},  # [Tölke & Krafczyk 2008]
    "D3Q15": {"e": (-2, -1, None, 1), "eps": (16, -4, None, 1)},  # [d'Humières et al. 2002]
    "D3Q19": {"e": (-30, -11, 8), "eps": (12, -4, 1)},
    "D3Q27": {"xxyyzz": (-8, 4, -2, 1)},
}
ALONG_X = {  # of c = (1, 0, …), and of the diagonals with c_x = 1
    "D2Q9": {"q_x": (-2, {1}), "p_xx": (1, {0})},
    "D3Q15": {"q_x": (-4, {1}), "p_xx": (2, {0})},
    "D3Q19": {"q_x": (-4, {1}), "p_xx": (2, {1}), "pi_xx": (-4, {1}), "m_x": (0, {1, -1})},
}


def of(lattice):
    one = make("lattices", lattice)
    return one, basis(one.c)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@over_lattices
def test_rows_are_orthogonal_and_their_own_inverse(lattice):
    one, base = of(lattice)
    assert len(base.rows) == one.Q
    for name, row in base.rows.items():
        assert gcd(*row) == 1
        assert [k for k, other in base.rows.items() if dot(row, other)] == [name]
        assert base.moments(row) == {k: dot(row, row) * (k == name) for k in base.rows}
        assert base.populations({name: dot(row, row)}) == list(row)


@over_lattices
def test_rows_are_those_of_the_papers(lattice):
    one, base = of(lattice)
    assert list(base.rows)[: 1 + one.D] == ["rho", "j_x", "j_y", "j_z"][: 1 + one.D]
    for name, values in BY_SPEED[lattice].items():
        assert list(base.rows[name]) == [values[dot(c, c)] for c in one.c]
    for name, (axis, diagonals) in ALONG_X.get(lattice, {}).items():
        row = dict(zip(one.c, base.rows[name], strict=True))
        assert row[(1, *(0,) * (one.D - 1))] == axis
        assert {value for c, value in row.items() if c[0] == 1 and dot(c, c) > 1} == diagonals


@over_lattices
def test_each_moment_relaxes_at_its_own_rate(lattice):
    one, base = of(lattice)
    rates = {name: Fraction(k + 1, 7) for k, name in enumerate(MRT().rates(0.1, one))}
    assert {rate_of(name, rates) for name in base.rows} == {*rates, "s_rho", "s_j"}
    for name, row in base.rows.items():
        s = rates.get(rate_of(name, rates), 0)
        assert MRT().relax(one, row, **rates) == [s * value for value in row]


def cell(one):
    """Some populations, density, rho, u and force term, exact."""
    random = Random(1)
    f, source = ([Fraction(random.randint(-99, 99), 5000) for _ in one.c] for _ in "fF")
    source[0] -= sum(source)
    rho = 1 + sum(f)
    u = [(dot(f, axis) + dot(source, axis) / 2) / rho for axis in zip(*one.c, strict=True)]
    return f, sum(f), rho, u, source


@pytest.mark.parametrize("forced", [False, True])
@over_lattices
def test_bgk_and_trt_are_special_cases(lattice, forced):
    one, base = of(lattice)
    f, density, rho, u, source = cell(one)
    if not forced:
        u = [dot(f, axis) / rho for axis in zip(*one.c, strict=True)]
    state = (one, f, density, rho, u, source if forced else None)
    even, odd = Fraction(13, 10), Fraction(7, 10)
    equal = dict.fromkeys(MRT().rates(0.1, one), even)
    assert MRT().collide(*state, equal) == make("collisions", "bgk").collide(
        *state, {"omega": even}
    )
    two = {rate_of(k, equal): odd if sum(base.parity[k]) % 2 else even for k in base.rows}
    two = {name: two[name] for name in equal}
    trt = {"omega_plus": even, "omega_minus": odd}
    assert MRT().collide(*state, two) == make("collisions", "trt").collide(*state, trt)
    assert MRT().collide(*state, equal) != MRT().collide(*state, two)


def test_equilibrium_of_d_humieres():
    """Equations (6) to (13) of Obrecht et al. 2013, and what rests."""
    one, base = of("D3Q19")
    rho, (x, y, z) = Fraction(3, 2), (Fraction(1, 10), Fraction(1, 7), Fraction(-1, 9))
    feq, jj = make("equilibria", "dhumieres").feq(one, rho, rho, [x, y, z]), x * x + y * y + z * z
    expected = {
        "rho": rho,
        "e": -11 * rho + 19 * jj,
        "eps": -Fraction(475, 63) * jj,
        "p_xx": 3 * x * x - jj,
        "p_ww": y * y - z * z,
        "p_xy": x * y,
        "p_yz": y * z,
        "p_zx": z * x,
    }
    for axis, j in zip("xyz", (x, y, z), strict=True):
        expected |= {f"j_{axis}": j, f"q_{axis}": -Fraction(2, 3) * j}
    assert base.moments(feq) == {name: expected.get(name, 0) for name in base.rows}
    rest = make("equilibria", "dhumieres").feq(one, 1, 1, [0, 0, 0])
    assert set(rest) == {Fraction(4, 21), Fraction(13, 126), Fraction(1, 63)}


def test_model_of_tolke_and_krafczyk():
    """Equations (4), (6) and (7) of the paper, and what rests."""
    one, base = of("D3Q13")
    rho, (x, y, z) = Fraction(3, 2), (Fraction(1, 10), Fraction(1, 7), Fraction(-1, 9))
    feq = make("equilibria", "incompressible").feq(one, rho, 1, [x, y, z])
    expected = {
        "rho": rho,
        "j_x": x,
        "j_y": y,
        "j_z": z,
        "e": Fraction(-11, 2) * rho + Fraction(13, 2) * (x * x + y * y + z * z),
        "p_xx": 2 * x * x - y * y - z * z,
        "p_ww": y * y - z * z,
        "p_xy": x * y,
        "p_yz": y * z,
        "p_zx": z * x,
    }
    assert base.moments(feq) == {name: expected.get(name, 0) for name in base.rows}
    assert set(make("equilibria", "compressible").feq(one, 1, 1, [0, 0, 0])) == set(one.w)
    nu = 0.07
    paper = {"s_nu": 2 / (8 * nu + 1), "s_nu_xy": 2 / (4 * nu + 1), "s_e": 1, "s_m": 1}
    assert MRT().rates(nu, one) == pytest.approx(paper, rel=1e-14)


def test_rates_are_those_of_the_paper_unless_given():
    one = make("lattices", "D3Q19")
    nu = Fraction(1, 10)
    paper = {"s_e": 1.19, "s_eps": 1.4, "s_q": 1.2, "s_pi": 1.4, "s_m": 1.98}
    assert MRT().rates(nu, one) == {"s_nu": pytest.approx(1 / 0.8)} | paper
    assert MRT(s_q=0.5).rates(nu, one) == MRT().rates(nu, one) | {"s_q": 0.5}
    assert MRT(s_q=0.5).structure() == MRT().structure()


def test_moments_that_hold_stress_relax_with_it_on_d3q27():
    """Unless a file says otherwise: with the published 1.98 waves grow in a fluid at rest."""
    one, nu = make("lattices", "D3Q27"), 0.1
    rates = MRT().rates(nu, one)
    assert rates["s_pi"] == rates["s_xxyz"] == rates["s_nu"]
    assert MRT(s_pi=1.98).rates(nu, one) == rates | {"s_pi": 1.98}
    k = np.full(3, 0.625 * np.pi)
    assert Waves("D3Q27", {"name": "mrt"}, nu).growth(k) < 0
    published = {"name": "mrt", "s_pi": 1.98, "s_xxyz": 1.98}
    assert Waves("D3Q27", published, nu).growth(k) > 0.04


def test_bad_rates_are_refused():
    case = BASE.replace("[run]", '[collision]\nname = "mrt"\n[run]')
    parse_case(tables(case), "box.toml")
    for rate, allowed in ((2, "< 2"), (2.5, "< 2"), (0, "> 0"), (-1, "> 0")):
        found = changed("collision.s_e", rate, case)
        assert found == [f"collision.s_e: found {rate}; allowed: {allowed}"]
    known = ", ".join(sorted(["closure", "equilibrium", "name", *MRT.numbers]))
    found = changed("collision.s_8", 1.0, case)
    assert found[0].startswith(f"collision.s_8: unknown key; allowed: {known}")
    assert changed("collision.s_xyz", 1.0, case) == [
        "collision.s_xyz: D3Q19 has no such moments; allowed: s_e, s_eps, s_q, s_pi, s_m"
    ]


def test_lattices_without_the_model_are_refused(monkeypatch):
    case = BASE.replace("[run]", '[collision]\nname = "mrt"\n[run]')
    with monkeypatch.context() as patch:
        patch.setattr(MRT, "lattices", ("D2Q9", "D3Q27"))
        expected = ["collision: mrt is not defined on D3Q19; allowed: D2Q9, D3Q27"]
        assert changed("collision.name", "mrt", case) == expected
    case = case.replace("D3Q19", "D3Q15")
    found = changed("collision.equilibrium", {"name": "dhumieres"}, case)
    assert found == ["collision.equilibrium: dhumieres is not defined on D3Q15; allowed: D3Q19"]

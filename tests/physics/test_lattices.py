"""Velocity sets: exact moments, opposites, the order of the slots; a wrong table is refused."""

from fractions import Fraction
from itertools import product
from math import prod

import pytest

from mpilbm.core.registry import find, names
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.lattices.velocity_sets import D2Q9

LATTICES = [find("lattices", name) for name in names("lattices")]
over_lattices = pytest.mark.parametrize("lattice", LATTICES, ids=lambda lattice: lattice.__name__)


def moment(lattice, powers) -> Fraction:
    """sum_i w_i c_ix^a c_iy^b …"""
    terms = zip(lattice.w, lattice.c, strict=True)
    return sum(w * prod(v**n for v, n in zip(c, powers, strict=True)) for w, c in terms)


def gaussian(powers, cs2) -> Fraction:
    """The same moment of a normal distribution of variance cs2, which is isotropic."""
    odd = any(n % 2 for n in powers)
    factors = [prod(range(n - 1, 0, -2)) for n in powers]
    return Fraction(0) if odd else cs2 ** (sum(powers) // 2) * prod(factors)


def exact(lattice, order) -> bool:
    exponents = product(range(order + 1), repeat=lattice.D)
    powers = [p for p in exponents if sum(p) == order]
    return all(moment(lattice, p) == gaussian(p, lattice.cs2) for p in powers)


@over_lattices
def test_velocities_and_weights(lattice):
    assert f"D{lattice.D}Q{lattice.Q}" == lattice().name
    assert len(set(lattice.c)) == len(lattice.c) == len(lattice.w) == lattice.Q
    assert {len(c) for c in lattice.c} == {lattice.D}
    assert all(isinstance(w, Fraction) and w > 0 for w in lattice.w)
    assert sum(lattice.w) == 1
    assert not any(lattice.c[0])


@over_lattices
def test_isotropic_to_the_declared_order_and_no_further(lattice):
    for order in range(lattice.isotropy + 2):
        assert exact(lattice, order)
    assert not exact(lattice, lattice.isotropy + 2)


@over_lattices
def test_moments_do_not_change_by_a_turn_of_the_box(lattice):
    """c_x -> c_y, c_y -> -c_x, and all permutations of axes that come with it."""
    turned = {(-c[1], c[0], *c[2:]): w for c, w in zip(lattice.c, lattice.w, strict=True)}
    cycled = {(*c[1:], c[0]): w for c, w in zip(lattice.c, lattice.w, strict=True)}
    assert turned == cycled == dict(zip(lattice.c, lattice.w, strict=True))


@over_lattices
def test_opposites(lattice):
    for i, j in enumerate(lattice.opp):
        assert lattice.opp[j] == i
        assert lattice.c[j] == tuple(-v for v in lattice.c[i])
        assert lattice.w[j] == lattice.w[i]


@over_lattices
def test_slots_are_sorted_by_the_plane_component(lattice):
    one = lattice()
    assert sorted(one.slots) == list(range(lattice.Q))
    along = [c[-1] for c in lattice.c]  # the slowest axis: z in 3D, y in 2D
    assert [one.offset(i)[0] for i in range(lattice.Q)] == along
    in_memory = sorted(range(lattice.Q), key=lambda i: one.slots[i])
    assert [along[i] for i in in_memory] == sorted(along)


@over_lattices
def test_offsets_are_velocities_as_plane_row_x(lattice):
    for i, c in enumerate(lattice.c):
        plane, row, x = lattice().offset(i)
        assert (x, *([row] if lattice.D == 3 else []), plane) == c
        assert lattice.D == 3 or row == 0


# By |c|^2 these are 4/9, 1/9, 1/36; every entry is a slip of the pen in the table of D2Q9.
C, W = D2Q9.c, D2Q9.w
SLIPS = {
    "weight": {"w": (*W[:-1], Fraction(1, 35))},
    "two weights, sum kept": {"w": (W[0], W[5], *W[2:5], W[1], *W[6:])},
    "negative weight": {"w": (W[0] + 2, W[1] - 1, W[2] - 1, *W[3:])},
    "no weight": {"w": (Fraction(5, 9), *[Fraction(1, 9)] * 4, *[Fraction(0)] * 4)},
    "too few weights": {"w": W[:-1]},
    "no opposite": {"c": (*C[:-1], (2, 1))},
    "velocity left out": {"c": C[:-1], "w": (W[0] + W[-1], *W[1:-1])},
    "first not at rest": {"c": (C[1], C[0], *C[2:]), "w": (W[1], W[0], *W[2:])},
    "isotropy claimed": {"isotropy": 6},
    "velocity twice": {
        "c": (C[0], C[1], C[2], *C[1:]),
        "w": (W[0], *[W[1] / 2] * 4, *W[3:]),
    },
}


@pytest.mark.parametrize("slip", SLIPS)
def test_wrong_table_is_refused(slip):
    with pytest.raises(ValueError, match=r"."):
        type("Wrong", (Lattice,), {"c": C, "w": W, "__annotations__": {}} | SLIPS[slip])


def test_right_table_is_taken():
    assert type("Right", (Lattice,), {"c": C, "w": W}).cs2 == Fraction(1, 3)

"""Orthogonal moments of a velocity set, derived from polynomials: the bases of `mrt`."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import gcd, lcm, prod

from mpilbm.core.formulas.trees import unnamed
from mpilbm.model.expressions import Expression, Let, Populations


def polynomials(x: int, y: int, z: int) -> dict[str, int]:
    """The polynomials of a velocity (x, y, z), {name: value}; a name is group_component."""
    xx, yy, zz = x * x, y * y, z * z
    cc = xx + yy + zz
    return {
        "rho": 1,
        "j_x": x, "j_y": y, "j_z": z,
        "e": cc,
        "eps": cc * cc,
        "q_x": x * cc, "q_y": y * cc, "q_z": z * cc,
        "p_xx": 3 * xx - cc, "p_ww": yy - zz, "p_xy": x * y, "p_yz": y * z, "p_zx": z * x,
        "pi_xx": cc * (3 * xx - cc), "pi_ww": cc * (yy - zz),
        "m_x": x * (yy - zz), "m_y": y * (zz - xx), "m_z": z * (xx - yy),
        "xyz": x * y * z,
        "xxyz_x": xx * y * z, "xxyz_y": x * yy * z, "xxyz_z": x * y * zz,
        "xyyzz_x": x * yy * zz, "xyyzz_y": y * zz * xx, "xyyzz_z": z * xx * yy,
        "xxyyzz": xx * yy * zz,
    }  # fmt: skip


class Basis:
    """Moments m_k = sum_i M_ki f_i with orthogonal rows M_k of integers without a common factor.

    The rows result from Gram-Schmidt orthogonalisation of the polynomials in their order;
    polynomials that are zero on the lattice or depend linearly on previous ones are omitted. On
    D2Q9 M is the matrix of Lallemand & Luo (2000), on D3Q15 and D3Q19 the matrices of d'Humières et
    al. (2002); on D3Q27 the construction continues to the sixth order.

    rows    {name: row M_k}, Q integers each
    norm    {name: sum_i M_ki^2}
    parity  {name: for each axis 1 if the row is odd in it, 0 if it is even}

    Because of the parities, moments are computed from sums and differences of f_i over reflected
    directions, which several moments share.
    """

    def __init__(self, c: tuple[tuple[int, ...], ...]):
        self.c = c
        self.rows: dict[str, tuple[int, ...]] = {}
        values = [polynomials(*v, *(0,) * (3 - len(v))) for v in c]
        for name in values[0]:
            self._add(name, [Fraction(value[name]) for value in values])
        if len(self.rows) != len(c):
            raise ValueError(f"{len(self.rows)} independent moments of {len(c)} velocities")
        self.norm = {name: sum(a * a for a in row) for name, row in self.rows.items()}
        self.parity = {name: self._parity(row) for name, row in self.rows.items()}
        opposite = [c.index(tuple(-a for a in v)) for v in c]
        self.pairs = [(i, j) for i, j in enumerate(opposite) if i <= j]
        corners = [i for i, v in enumerate(c) if min(v) >= 0]
        self.turns = [  # (corner, its parity, the pairs that are its reflections)
            (i, p, [pair for pair in self.pairs if self._speeds(pair[0]) == c[i]])
            for i in corners
            for p in product(*(range(a + 1) for a in c[i]))
        ]

    def _add(self, name: str, row: list[Fraction]) -> None:
        """Subtract the projections on the existing rows; append the result unless it is zero."""
        for other in self.rows.values():
            product = sum((a * b for a, b in zip(row, other, strict=True)), Fraction(0))
            share = product / sum(b * b for b in other)
            row = [a - share * b for a, b in zip(row, other, strict=True)]
        if any(row):
            scale = lcm(*(a.denominator for a in row))
            whole = [int(a * scale) for a in row]
            self.rows[name] = tuple(a // gcd(*whole) for a in whole)

    def _speeds(self, i: int) -> tuple[int, ...]:
        return tuple(abs(a) for a in self.c[i])

    def _parity(self, row: Sequence[int]) -> tuple[int, ...]:
        """For each axis 1 if the row is odd in it, else 0."""
        reflected = {v: row[self.c.index(self._speeds(i))] for i, v in enumerate(self.c)}
        for parity in product((0, 1), repeat=len(self.c[0])):
            if all(row[i] == sign(v, parity) * reflected[v] for i, v in enumerate(self.c)):
                return parity
        raise ValueError(f"{row} is neither even nor odd in one of the axes")

    def moments(self, f: Populations, let: Let = unnamed) -> dict[str, Expression]:
        """The moments of Q populations, {name: expression}; `let` names shared sums."""
        plus = {i: let(f"plus_{i}", f[i] + f[j]) if i != j else f[i] for i, j in self.pairs}
        minus = {i: let(f"minus_{i}", f[i] - f[j]) for i, j in self.pairs if i != j}
        m = dict.fromkeys(self.rows, 0)
        for corner, parity, pairs in self.turns:
            half = minus if sum(parity) % 2 else plus
            total = sum(sign(self.c[i], parity) * half[i] for i, _ in pairs)
            if len(pairs) > 1:
                total = let(f"sum_{_letters(self.c[corner])}_{_letters(parity)}", total)
            for name in self._of(corner, parity):
                m[name] += self.rows[name][corner] * total
        return m

    def populations(self, m: Mapping[str, Expression], let: Let = unnamed) -> list[Expression]:
        """The Q populations sum_k M_ki m_k / |M_k|^2; moments that are not in `m` are zero."""
        m = {k: let(f"n_{k}", v * Fraction(1, self.norm[k])) for k, v in m.items() if v != 0}
        even, odd = ({i: 0 for i, _ in self.pairs} for _ in "eo")
        for corner, parity, pairs in self.turns:
            names = [name for name in self._of(corner, parity) if name in m]
            total = sum(self.rows[name][corner] * m[name] for name in names)
            if len(names) > 1 and len(pairs) > 1:
                total = let(f"part_{_letters(self.c[corner])}_{_letters(parity)}", total)
            half = odd if sum(parity) % 2 else even
            for i, _ in pairs:
                half[i] += sign(self.c[i], parity) * total
        f = [even[0]] * len(self.c)
        for i, j in self.pairs:
            if i != j:
                e, o = let(f"even_{i}", even[i]), let(f"odd_{i}", odd[i])
                f[i], f[j] = e + o, e - o
        return f

    def _of(self, corner: int, parity: tuple[int, ...]) -> list[str]:
        """Names of the moments with this parity to which the direction `corner` contributes."""
        return [k for k, row in self.rows.items() if self.parity[k] == parity and row[corner]]


def sign(v: tuple[int, ...], parity: tuple[int, ...]) -> int:
    """The product of v_a over the axes with parity 1: 1, -1 or 0."""
    return prod(a**p for a, p in zip(v, parity, strict=True))


def _letters(v: Sequence[int]) -> str:
    return "".join(axis for axis, a in zip("xyz", v, strict=False) if a) or "0"


@cache
def basis(c: tuple[tuple[int, ...], ...]) -> Basis:
    """Return the basis of these velocities, computed once."""
    return Basis(c)

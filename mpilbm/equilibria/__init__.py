"""Equilibrium distributions, written for stored deviations and full populations alike."""

from typing import ClassVar

from mpilbm.registry import Parameters


class Equilibrium(Parameters):
    """feq_i(rho, u) of a lattice.

    `density` is what the stored populations add up to: rho - 1 where they are deviations
    f_i - feq_i(rho = 1, u = 0), rho where they are not. With density = rho the formula is feq
    itself; so no digit of a small deviation is lost in a difference of two numbers near 1.
    """

    lattices: ClassVar[tuple[str, ...] | None] = None  # on which it is defined; None: all
    any_unit: ClassVar[bool] = True  # feq of c density, c rho and u is c feq; no rho_0 in it
    second_order: ClassVar[bool] = False  # no moments of it go beyond the second Hermite tensor

    def feq(self, lattice, density, rho, u) -> list:
        """Q expressions; `u` holds D of them."""
        raise NotImplementedError

    def velocity(self, momentum, rho) -> list:
        """The velocity of this equilibrium, from the momentum per volume."""
        return [j / rho for j in momentum]

    def problems(self, case) -> list[str]:
        """Refuse lattices on which it is not defined."""
        if self.lattices is None or case.lattice.name in self.lattices:
            return []
        return [f"{self.name} is not defined on {case.lattice.name}; "
                f"allowed: {', '.join(self.lattices)}"]  # fmt: skip


def dot(a, b):
    """Scalar product of two vectors of expressions or numbers, zero terms left out."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0), 0)


def expanded(value):
    """A sum of products where symbolic, so that equal terms cancel; numbers as they are."""
    return value.expand() if hasattr(value, "expand") else value


def one_way(c: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """(1, c) or (-1, -c), so that c and -c give the same vector and opposite signs."""
    back = tuple(-a for a in c)
    return (1, c) if c >= back else (-1, back)

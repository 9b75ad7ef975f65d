"""Relaxation of the shear at the rate of the viscosity, of the rest so that H is least."""

from fractions import Fraction

from mpilbm.collisions import Collision, unnamed
from mpilbm.collisions.entropic import TINY
from mpilbm.equilibria import dot
from mpilbm.functions import largest
from mpilbm.registry import register


@register("collisions", "kbc")
class KBC(Collision):
    """f* = f - beta (2 s + gamma h), f - feq = s + h, gamma = 1/beta - (2 - 1/beta) <s|h> / <h|h>.

    s has the shear stress of f - feq and no other moment sum_i c_ix^k c_iy^l c_iz^m f_i; <a|b> =
    sum_i a_i b_i / feq_i. beta = 1 / (2 tau), nu = cs2 (tau - 1/2) exactly, whatever gamma, which
    makes H least after the step to leading order: H may grow, but under-resolved flows are stable
    and there is no logarithm. With a force f - feq + F/2 is what relaxes. D2Q9, D3Q27.
    [Karlin, Bösch & Chikatamarla 2014, Phys. Rev. E 90, 031302(R)]
    """

    equilibria = ("entropic",)
    lattices = ("D2Q9", "D3Q27")

    def rates(self, nu, lattice):
        """Beta from the viscosity."""
        return {"beta": 1 / (2 * nu / float(lattice.cs2) + 1)}

    def collide(self, lattice, f, density, rho, u, source, rates, let=unnamed):
        """f + F - beta (2 s + gamma h) of d = f - feq + F/2."""
        feq, beta, rest = (
            self.feq(lattice, density, rho, u),
            rates["beta"],
            let("rest", rho - density),
        )
        F = source or [0] * lattice.Q
        d = [a - b + Fraction(1, 2) * F_i for a, b, F_i in zip(f, feq, F, strict=True)]
        s = shear(lattice, d, let)
        h = [a - b for a, b in zip(d, s, strict=True)]
        scaled = [h_i / (b + w * rest) for h_i, b, w in zip(h, feq, lattice.w, strict=True)]
        ratio = let("ratio", dot(s, scaled) / largest(dot(h, scaled), TINY))
        once = let("once", 1 - (2 * beta - 1) * ratio)  # beta gamma
        return [
            a + F_i - (2 * beta * b + once * c) for a, F_i, b, c in zip(f, F, s, h, strict=True)
        ]


def shear(lattice, d, let) -> list:
    """Populations with the moments c_a c_b and c_a^2 - c^2 / D of d and no other power of c."""
    axes, s = range(lattice.D), []
    P = {
        (a, b): let(f"p_{a}{b}", dot([c[a] * c[b] for c in lattice.c], d))
        for a in axes for b in axes if a <= b
    }  # fmt: skip
    trace = sum(P[a, a] for a in axes) / lattice.D
    for c in lattice.c:
        along = [a for a in axes if c[a]]
        if len(along) == 1:
            s.append((P[along[0], along[0]] - trace) / 2)
        elif len(along) == 2:
            s.append(c[along[0]] * c[along[1]] * P[*along] / 4)
        else:
            s.append(0)
    return s

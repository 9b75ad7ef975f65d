"""Relaxation of the second moments; higher non-equilibrium moments are removed."""

from itertools import product
from typing import Any

from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.algebra import dot
from mpilbm.physics.collisions.trace_rate import TraceRate
from mpilbm.physics.lattices import Lattice


@register("collisions", "regularized")
class Regularized(TraceRate):
    """f* = feq + (1 - omega) w_i Q_i : A / (2 cs4), A = sum_j Q_j (f_j - feq_j).

    Q_i = c_i c_i - cs2 1; nu = cs2 (1/omega - 1/2). More stable than `bgk` at high Reynolds
    numbers. The layout `moments` supports it. All lattices isotropic to order 4.
    [Latt & Chopard 2006, Math. Comput. Simul. 72, 165; Januszewski & Kostur 2014, Comput. Phys.
    Commun. 185, 2350, 2.1.1]
    """

    second_order = True

    def relax(self, lattice: Lattice, d: Populations, *_: Any, **rates: Any) -> list[Expression]:
        """d_i minus the part of d_i with the second moments A* that are left, see TraceRate."""
        # sum_i Q_i,ab d_i; d has no density, so the term cs2 delta_ab is zero
        second = {
            (a, b): dot([c[a] * c[b] for c in lattice.c], d)
            for a, b in product(range(lattice.D), repeat=2)
        }
        kept = self.kept(second, [(a, a) for a in range(lattice.D)], rates)
        relaxed = []
        for w, c, d_i in zip(lattice.w, lattice.c, d, strict=True):
            Q = {(a, b): c[a] * c[b] - (lattice.cs2 if a == b else 0) for a, b in kept}
            factors = [w * Q[pair] / (2 * lattice.cs2**2) for pair in kept]
            relaxed.append(d_i - dot(factors, kept.values()))
        return relaxed

"""The QR model: an eddy viscosity from two invariants of the rate of strain, zero at walls."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.trees import largest, sqrt
from mpilbm.core.registry import register
from mpilbm.model.expressions import Expression, Let, Stress
from mpilbm.physics.closures import Closure, Strain
from mpilbm.physics.lattices import Lattice

LEAST_SQUARE = 1e-30  # of q / rho^2, so that r / q is finite in a fluid at rest


@register("closures", "qr")
class QR(Closure):
    """nu_t = constant^2 max(r, 0) / q, r = -det S, q = S_ab S_ab / 2, in lattice units.

    S is the rate of strain without its trace. In shear flows and in all plane flows det S = 0, so
    nu_t = 0; it is zero at a wall and grows in proportion to the distance, as Vreman's. Other
    models for walls (WALE, Vreman, sigma) need the vorticity, which the populations of a cell do
    not contain. r > 0 where the strain stretches vortices to sheets and small scales are produced;
    nowhere is it larger than constant^2 |S| / (3 sqrt(3)), see `smagorinsky`.
    The local relaxation time tau is the solution of tau = tau_0 + nu_t / cs2 with S = -P / (2 rho
    cs2 tau), P the stress:

        tau = (tau_0 + sqrt(tau_0^2 + 2 constant^2 max(det P, 0) / (rho cs4 P_ab P_ab / 2))) / 2

    constant = 1/pi: the least value with which nu_t balances the production of strain in a cell, of
    which (1/pi)^2 is Poincare's constant. 3D lattices. [Verstappen 2011, J. Sci. Comput. 49, 94]
    """

    constant: float = Field(
        0.32, gt=0, description="C; 1/pi is the least value that balances the production"
    )

    dimensions = (3,)

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The factor of det P / (rho q): 2 constant^2 / cs4."""
        return {"eddy": 2 * self.constant**2 / float(lattice.cs2) ** 2}

    def omega(
        self,
        lattice: Lattice,
        stress: Stress,
        rho: Expression,
        omega: Expression,
        let: Let,
        eddy: Expression,
    ) -> Expression:
        """Return 1 / tau; tau = tau_0 ratio, the solution of tau = tau_0 + nu_t / cs2."""
        numbered = enumerate(stress.items())
        P = {pair: let(f"strain_{k}", value / rho) for k, (pair, value) in numbered}
        r = let("production", largest(let("determinant", determinant(P)), 0))
        q = let("square", largest(let("half_square", half_square(P)), LEAST_SQUARE))
        ratio = (1 + sqrt(1 + eddy * omega**2 * r / q)) / 2
        return let("omega_local", omega / ratio)

    def viscosity(self, lattice: Lattice, strain: Strain, nu: Any) -> NDArray[Any]:
        """Nu + constant^2 max(r, 0) / q."""
        mean = sum(S for (a, b), S in strain.items() if a == b) / lattice.D
        S = {(a, b): value - mean if a == b else value for (a, b), value in strain.items()}
        q = np.maximum(half_square(S), LEAST_SQUARE)
        return nu + self.constant**2 * np.maximum(-determinant(S), 0) / q


def determinant(S: Stress) -> Expression:
    """The determinant of a symmetric tensor {(a, b): S_ab}, a <= b, in 3D."""
    return (
        S[0, 0] * (S[1, 1] * S[2, 2] - S[1, 2] ** 2)
        - S[0, 1] * (S[0, 1] * S[2, 2] - S[1, 2] * S[0, 2])
        + S[0, 2] * (S[0, 1] * S[1, 2] - S[1, 1] * S[0, 2])
    )


def half_square(S: Stress) -> Expression:
    """S_ab S_ab / 2 of a symmetric tensor {(a, b): S_ab}, a <= b."""
    return sum((value**2 / 2 if a == b else value**2) for (a, b), value in S.items())

"""Closures (subgrid models): the relaxation rate of the shear stress in each cell.

Imports only `registry` and lower layers. To add a closure, write one file with a class derived from
`Closure` and `@register("closures", name)` that defines `arguments`, `omega` and `viscosity`.
"""

from typing import Any

from mpilbm.physics.lattices import Lattice
from mpilbm.registry import Parameters


class Closure(Parameters):
    """A model of the flow that the cells do not resolve: an eddy viscosity in each cell.

    The generated kernel computes `omega` after rho and u and before the collision. The collision
    derives its other rates from `omega`, see Collision.local_rates. The parameters of a closure are
    arguments of the kernel (`arguments`), so a change of their values does not change the kernel.
    """

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """Arguments of the kernel in addition to the rates of the collision, {name: value}."""
        raise NotImplementedError

    def omega(self, lattice: Lattice, stress, rho, omega, let, *_: Any, **arguments: Any) -> Any:
        """Return the relaxation rate of the shear stress in a cell, omega_local.

            stress_ab = sum_i c_ia c_ib (f_i - feq_i + F_i / 2), without its trace
                      = -2 rho cs2 S_ab / omega_local,   S_ab the rate of strain

        stress  {(a, b): expression} with a <= b
        rho     density by which the momentum is divided: rho_0 for equilibria with a fixed density
        omega   rate for the viscosity of the fluid, without eddy viscosity
        let     as in Collision.collide
        """
        raise NotImplementedError

    def viscosity(self, lattice: Lattice, strain):
        """Return the eddy viscosity in lattice units from the rate of strain, an array over cells.

        `strain`: {(a, b): S_ab} with a <= b, arrays over cells; the trace need not be zero.
        """
        raise NotImplementedError

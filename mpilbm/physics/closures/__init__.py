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
    derives its other rates from it (Collision.local_rates). Parameters of the closure reach the
    kernel only through `arguments`, so another value needs no other kernel.
    """

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """Numbers that the kernel receives in addition to the rates of the collision, by name."""
        raise NotImplementedError

    def omega(self, lattice: Lattice, stress, rho, omega, let, *_: Any, **arguments: Any) -> Any:
        """The relaxation rate of the shear stress in a cell.

            stress_ab = sum_i c_ia c_ib (f_i - feq_i + F_i / 2), without its trace
                      = -2 rho cs2 S_ab / omega_local,   S_ab the rate of strain

        stress  {(a, b): expression} with a <= b
        rho     density that belongs to the momentum: rho_0 for an equilibrium with a fixed density
        omega   rate of the fluid's own viscosity
        let     as in Collision.collide
        """
        raise NotImplementedError

    def viscosity(self, lattice: Lattice, strain):
        """The eddy viscosity in lattice units, in cells with a known rate of strain.

        `strain`: {(a, b): S_ab} with a <= b, arrays over cells; the trace is included.
        """
        raise NotImplementedError

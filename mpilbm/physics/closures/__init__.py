"""Closures: the relaxation rate of the shear stress in each cell.

Subgrid models add an eddy viscosity; the viscosity of generalised Newtonian fluids depends on the
shear rate. To add a closure, write one file with a class derived from `Closure` and
`@register("closures", name)` that defines `arguments`, `omega` and `viscosity`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from mpilbm.core.registry import Parameters
from mpilbm.model.expressions import Expression, Let, Stress
from mpilbm.physics.lattices import Lattice

Strain = Mapping[tuple[int, int], NDArray[Any]]  # {(a, b): S_ab} with a <= b, arrays over cells


class Closure(Parameters):
    """A viscosity that is computed in each cell from the stress.

    The generated kernel computes `omega` after rho and u and before the collision. The collision
    derives its other rates from `omega`, see Collision.local_rates. The parameters of a closure are
    arguments of the kernel (`arguments`), so a change of their values does not change the kernel.
    """

    dimensions: ClassVar[tuple[int, ...]] = (2, 3)  # D of the lattices on which it is defined
    # Whether in any flow of positive density divisors in `omega` are normal numbers, quotients
    # normal or 0, and no root is of a negative number: GPUs then compute them without branches.
    normal_numbers: ClassVar[bool] = False

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """Arguments of the kernel in addition to the rates of the collision, {name: value}."""
        raise NotImplementedError

    def omega(
        self,
        lattice: Lattice,
        stress: Stress,
        rho: Expression,
        omega: Expression,
        let: Let,
        *_: Any,
        **arguments: Any,
    ) -> Expression:
        """Return the relaxation rate of the shear stress in a cell, omega_local.

            stress_ab = sum_i c_ia c_ib (f_i - feq_i + F_i / 2), without its trace
                      = -2 rho cs2 S_ab / omega_local,   S_ab the rate of strain

        stress  {(a, b): expression} with a <= b
        rho     density by which the momentum is divided: rho_0 for equilibria with a fixed density
        omega   rate for the viscosity of the fluid, as given in the case
        let     as in Collision.collide
        """
        raise NotImplementedError

    def viscosity(self, lattice: Lattice, strain: Strain, nu: Any) -> NDArray[Any]:
        """Return the viscosity in lattice units from the rate of strain, an array over cells.

        `strain`: {(a, b): S_ab} with a <= b, arrays over cells; the trace need not be zero. `nu`
        is the viscosity of the fluid, as given in the case; with sponges an array over cells.
        """
        raise NotImplementedError

    def limits(self) -> tuple[float, float] | None:
        """The least and the largest viscosity of a cell; None for an eddy viscosity.

        A closure with limits determines the whole viscosity; `check` judges it by the least one.
        """
        return None


def shear_rate(lattice: Lattice, strain: Strain) -> NDArray[Any]:
    """sqrt(2 S_ab S_ab) of {(a, b): S_ab}, a <= b, arrays; S without its trace."""
    mean = sum(S for (a, b), S in strain.items() if a == b) / lattice.D
    squares = (((S - mean) if a == b else 2**0.5 * S) ** 2 for (a, b), S in strain.items())
    return (2 * sum(squares)) ** 0.5

"""Closures: the relaxation rate of the shear stress in each cell, from the flow in it."""

from mpilbm.registry import Parameters


class Closure(Parameters):
    """What flow too small for the cells does to that which they hold: a viscosity of their own.

    The Model asks for `omega` between rho, u and the collision, whose other rates then follow it as
    the collision says (Collision.local_rates). Fields reach kernels through `arguments` alone.
    """

    def arguments(self, lattice) -> dict[str, float]:
        """Numbers of the kernel by name, beside the collision's rates."""
        raise NotImplementedError

    def omega(self, lattice, stress, rho, omega, let, **arguments):
        """The rate in a cell; `omega` is that of the fluid's own viscosity.

        `stress`: {(a, b): expression}, a <= b, the second moments of f - feq + F/2 without their
        trace, -2 rho cs2 S_ab / rate; S the rate of strain. `rho` goes with the momentum: rho_0 for
        an equilibrium that has one. `let` as for Collision.
        """
        raise NotImplementedError

    def viscosity(self, lattice, strain):
        """What the flow adds to the fluid's viscosity in cells of a known rate of strain.

        `strain`: {(a, b): S_ab}, a <= b, arrays over cells, the trace in them.
        """
        raise NotImplementedError

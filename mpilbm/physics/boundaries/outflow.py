"""Outflow: populations from cells inwards of a face, or from the previous step."""

from typing import Annotated

from pydantic import Field

from mpilbm.core.formulas.values import Given, Value
from mpilbm.core.quantity import RHO
from mpilbm.core.registry import register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.boundaries import DENSITY, Boundary
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot


class FromInside(Boundary):
    """Base class of outlets that take populations f from cells inwards or from the previous step.

    With a given `rho` the incoming populations are f_i + feq_i(rho, u) - feq_i(rho_f, u), where
    rho_f and u are the density and velocity of f: the density is fixed, and sound is reflected.
    Where u leads inwards, rho (1 - u.u / (2 cs2)) replaces rho: the fluid beyond the face is at
    rest and has the given density, so backflow brings no kinetic energy of its own
    [Dong, Karniadakis & Chryssostomidis 2014, J. Comput. Phys. 261, 83].
    Without `rho`, and with an inlet that prescribes a velocity, the mass is not fixed: it may drift
    and, for boundaries with the capability `drifts`, grow without bound.
    """

    wall_at = "node"
    declares = Capabilities(normal=True)
    rho: Annotated[Value | None, RHO] = Field(None, description=DENSITY, examples=[1.0])

    def values(self) -> dict[str, Given]:
        """The density, if it is given."""
        return {} if self.rho is None else {"rho": self.rho}

    def found(self, cell: Cell) -> Populations:
        """The Q populations f."""
        raise NotImplementedError

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The populations whose directions lead inwards."""
        f = self.found(cell)
        if self.rho is not None:
            f = [cell.let(f"found_{i}", f_i) for i, f_i in enumerate(f)]
            density, _, u = cell.macroscopic(f)
            density = cell.let("density_found", density)
            u = [cell.let(f"u_found_{a}", v) for a, v in enumerate(u)]
            before = cell.feq(density, cell.rest(density), u)
            rho = self.held(cell, u)
            after = cell.feq(cell.stored(rho), rho, u)
            f = [a + b - c for a, b, c in zip(f, after, before, strict=True)]
        return {i: f[i] for i in self.entering(cell)}

    def held(self, cell: Cell, u: Vector) -> Expression:
        """The density at the face: `rho`, or what is left of it where the fluid enters."""
        rho = cell.values["rho"]
        entering = rho * (1 - dot(u, u) / (2 * cell.lattice.cs2))
        return cell.let("held", cell.below(0, dot(cell.normal, u), entering, rho))

    def entering(self, cell: Cell) -> list[int]:
        """The directions that lead inwards."""
        return [i for i, c in enumerate(cell.lattice.c) if dot(c, cell.normal) > 0]


@register("boundaries", "copy")
class Copy(FromInside):
    """Outflow: f_i(x) = f_i(x + n) where c_i . n > 0 and n is the inward normal.

    With `rho` the velocity is copied and the density is given; second order. All lattices.
    [Januszewski & Kostur 2014, Comput. Phys. Commun. 185, 2350: nearest-neighbour copy]
    """

    declares = Capabilities(normal=True, inward=1, drifts=True)

    def found(self, cell: Cell) -> Populations:
        """The populations that arrive in the cell inwards."""
        return cell.inward(1).arrives


@register("boundaries", "neumann")
class Neumann(FromInside):
    """Outflow: f_i(x) = (4 f_i(x + n) - f_i(x + 2n)) / 3 where c_i . n > 0, n inward normal.

    The normal derivative of the populations is zero, to second order, by one-sided differences.
    With `rho` the normal derivatives of velocity and stress are zero, and the density is given.
    All lattices.
    [Junk & Yang 2008, Prog. Comput. Fluid Dyn. 8, 38]
    """

    declares = Capabilities(normal=True, inward=2, drifts=True)

    def found(self, cell: Cell) -> Populations:
        """The populations whose normal derivative is zero."""
        one, two = cell.inward(1).arrives, cell.inward(2).arrives
        return [(4 * a - b) / 3 for a, b in zip(one, two, strict=True)]


@register("boundaries", "yu")
class Yu(FromInside):
    """Outflow: f_i(x) = 2 f_i(x + n) - f_i(x + 2n) where c_i . n > 0, n inward normal.

    Linear extrapolation; second order, also in flows with a pressure gradient. With `rho` velocity
    and stress are extrapolated, and the density is given. It amplifies waves: next to walls it is
    unstable at small viscosities, see `warnings`. All lattices.
    [Yu, Mei & Shyy 2005, Prog. Comput. Fluid Dyn. 5, 3]
    """

    declares = Capabilities(normal=True, inward=2, drifts=True)

    def warnings(self, case: Case) -> list[str]:
        """Viscosities at which a wave grew in the cells next to walls.

        Measured in channels at u/nu from 0.5 to 10, D2Q9, 9 cells across, `tools/face_stability`.
        """
        nu = min(fluid.viscosity for fluid in case.fluids)
        if nu > 0.02 or all(each.face_flow.crosses for each in case.boundaries):
            return []
        return [
            "name: next to walls a wave that alternates from step to step grew with 'yu' at "
            f"viscosities of 0.02 and less, found {nu:g}; use copy or characteristic"
        ]

    def found(self, cell: Cell) -> Populations:
        """The populations extrapolated along the normal."""
        one, two = cell.inward(1).arrives, cell.inward(2).arrives
        return [2 * a - b for a, b in zip(one, two, strict=True)]


@register("boundaries", "do_nothing")
class DoNothing(FromInside):
    """Outflow: f_i(x, t+1) = f_out_i(x, t) where c_i . n > 0 and n is the inward normal.

    Extrapolation in time; it reads no other cell. A uniform flow passes unchanged. Order 0: in a
    channel the velocity does not converge, its error is 3 % of the largest speed. All lattices.
    [Januszewski & Kostur 2014, Comput. Phys. Commun. 185, 2350]
    """

    def found(self, cell: Cell) -> Populations:
        """The outgoing populations."""
        return cell.left

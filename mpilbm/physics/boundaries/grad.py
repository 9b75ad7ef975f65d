"""Outflow by Grad's approximation."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Incoming, Populations
from mpilbm.physics.algebra import moments_of, populations
from mpilbm.physics.boundaries.outflow import FromInside
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.lattices import Lattice


@register("boundaries", "grad")
class Grad(FromInside):
    """Outflow: f_i = w_i (rho + rho c_i.u / cs2 + (P - rho cs2 1) : Q_i / (2 cs4)), c_i . n > 0.

    n is the inward normal, Q_i = c_i c_i - cs2 1 and P = sum_i c_i c_i f_i. With `source` =
    "last_step", rho, u and P are the values of the cell in the previous step; with "neighbours"
    they are extrapolated linearly from two cells inwards. First order.
    [Chikatamarla, Ansumali & Karlin 2006, Europhys. Lett. 74, 215]
    """

    source: Literal["last_step", "neighbours"] = Field(
        "last_step", description="where rho, u and the stress of the face come from"
    )

    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")

    @property
    def capabilities(self) -> Capabilities:
        """With `source` = "neighbours" the boundary reads two cells inwards."""
        inwards = self.source == "neighbours"
        return replace(self.declares, inward=2 * inwards, drifts=inwards)

    def state(self, lattice: Lattice) -> tuple[str, ...]:
        """Names of the second moments of the arriving populations; empty with "neighbours".

        Density and momentum follow from the outgoing populations and are not stored.
        """
        count = lattice.D * (lattice.D + 1) // 2
        return () if self.capabilities.inward else tuple(f"second_{k}" for k in range(count))

    def begin(self, cell: Cell) -> dict[str, Expression]:
        """The second moments of the outgoing populations."""
        second = moments_of(cell.lattice, cell.left)[2]
        return {f"second_{k}": value for k, value in enumerate(second)}

    def follow(self, cell: Cell, enters: Incoming) -> dict[str, Expression]:
        """The second moments of the populations that arrive in this step."""
        f = [enters.get(i, f_i) for i, f_i in enumerate(cell.arrives)]
        return {f"second_{k}": value for k, value in enumerate(moments_of(cell.lattice, f)[2])}

    def found(self, cell: Cell) -> Populations:
        """Q populations from the moments of orders 0 to 2."""
        if not self.capabilities.inward:
            momentum = cell.momentum(cell.rho, cell.u)
            return populations(cell.lattice, cell.density, momentum, list(cell.state.values()))
        one, two = (moments_of(cell.lattice, cell.inward(k).arrives) for k in (1, 2))
        momentum, second = (
            [2 * a - b for a, b in zip(one[k], two[k], strict=True)] for k in (1, 2)
        )
        return populations(cell.lattice, 2 * one[0] - two[0], momentum, second)

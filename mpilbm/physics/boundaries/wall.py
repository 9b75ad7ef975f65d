"""Base class of no-slip walls, at rest or moving."""

from typing import Annotated

from pydantic import Field

from mpilbm import quantity
from mpilbm.formulas.values import Vector
from mpilbm.physics.boundaries import VELOCITY, Boundary, by_axis


class Wall(Boundary):
    """A no-slip wall, at rest or moving with `velocity`; rho_0 = 1."""

    velocity: Annotated[Vector | None, quantity.VELOCITY] = Field(
        None, description=f"{VELOCITY}; none: at rest", examples=[[0.1, 0]]
    )

    def structure(self):
        """As in the base class, and whether the wall moves."""
        return super().structure() | {"moving": self.velocity is not None}

    def values(self):
        """The components of the wall's velocity; empty at rest."""
        return by_axis("velocity", self.velocity or ())

    @property
    def wall_velocity(self) -> tuple | str | None:
        """`velocity` as given in the case; None at rest."""
        return self.velocity

    def motion(self, cell) -> list:
        """Q expressions feq_i(rho_0, u_wall) - feq_opp(i)(rho_0, u_wall); zeros at rest."""
        lattice, u = cell.lattice, list(cell.values.values())
        feq = cell.feq(cell.stored(1), 1, u) if u else [0] * lattice.Q
        return [feq_i - feq[j] for feq_i, j in zip(feq, lattice.opp, strict=True)]

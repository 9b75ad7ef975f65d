"""Base class of no-slip walls, at rest or moving."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from mpilbm.core import quantity
from mpilbm.core.formulas.values import Given, Vector
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries import VELOCITY, Boundary, by_axis
from mpilbm.physics.rotation import Rotation


class Wall(Boundary):
    """A no-slip wall, at rest, moving with `velocity`, or in `rotation`; rho_0 = 1."""

    velocity: Annotated[Vector | None, quantity.VELOCITY] = Field(
        None, description=f"{VELOCITY}; none: at rest", examples=[[0.1, 0]]
    )
    rotation: Rotation | None = Field(
        None,
        description="rigid rotation, in place of velocity",
        examples=[{"centre": [32, 32], "rate": 0.001}],
    )

    @model_validator(mode="after")
    def _rotated(self) -> Self:
        """The velocity of the rotation."""
        if self.rotation is not None:
            if self.velocity is not None:
                raise ValueError("has both velocity and rotation; give one of them")
            object.__setattr__(self, "velocity", self.rotation.velocity())
        return self

    def problems(self, case: Case) -> list[str]:
        """Errors of all boundaries, and a rotation with a wrong number of entries."""
        wrong = self.rotation.problem(case.dimensions) if self.rotation else ""
        return [f"rotation.{wrong}"] if wrong else super().problems(case)

    def structure(self) -> dict[str, Any]:
        """Properties that determine the kernel text, also whether the wall moves."""
        return super().structure() | {"moving": self.velocity is not None}

    def values(self) -> dict[str, Given]:
        """The components of the wall's velocity; empty at rest."""
        return by_axis("velocity", self.velocity or ())

    @property
    def wall_velocity(self) -> tuple[Given, ...] | str | None:
        """`velocity` as given in the case; None at rest."""
        return self.velocity

    def motion(self, cell: Cell, local: bool = False) -> list[Expression]:
        """Q expressions feq_i(rho, u_wall) - feq_opp(i)(rho, u_wall); zeros at rest.

        rho is rho_0 = 1 or, with `local`, the density of the outgoing populations of the cell.
        """
        lattice, u = cell.lattice, list(cell.values.values())
        if not u:
            return [0] * lattice.Q
        density, rho = (cell.density, cell.rho) if local else (cell.stored(1), 1)
        feq = cell.feq(density, rho, u)
        return [feq_i - feq[j] for feq_i, j in zip(feq, lattice.opp, strict=True)]

"""Solids in the flow."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from mpilbm.case.tables.scalars import of_body, one_condition
from mpilbm.case.tables.values import Label
from mpilbm.core.registry import Choice, Parameters
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.scalars.boundaries import ScalarBoundary

OnScalar = Annotated[
    ScalarBoundary, Choice("scalar_boundaries", of_body), BeforeValidator(one_condition)
]


class Body(Parameters):
    """A solid in the flow: a shape or the solid cells of a mask file, with its own boundary.

    A shape that reaches through a periodic face continues at the opposite face. There, formulas of
    its `velocity` and the torque on it refer to the coordinates in which the shape is given, as if
    the body were in one piece: its centre may lie on a face or outside the box. This requires a
    body shorter than the box along this axis. A shape that is infinite along a periodic axis, or
    longer than four boxes, is not repeated along this axis.
    """

    label: Label = Field(
        "", description="name of the body in files and outputs; empty: its index", examples=["ball"]
    )
    shape: Annotated[Any, Choice("shapes")] = Field(
        None, description="shape of the body; or give mask"
    )
    mask: str | None = Field(
        None,
        description="file of the cells: 0 is fluid, any other value is solid; or give shape",
        examples=["rock.npy"],
    )
    boundary: Annotated[Boundary, Choice("boundaries")] = Field(
        description="condition on the surface"
    )

    scalar: dict[str, OnScalar] = Field(
        {},
        description="condition on each scalar, by its label: value, flux, h and ambient, or "
        "conjugate; without an entry the body is adiabatic",
        examples=[{"T": {"value": 1.0}}],
    )

    @model_validator(mode="after")
    def _one_solid(self) -> Self:
        """Exactly one of shape and mask; no `where` in the boundary."""
        if (self.shape is None) == (self.mask is None):
            found = "neither" if self.shape is None else "both"
            raise ValueError(f"has {found} of shape and mask; give exactly one")
        if self.boundary.where:
            raise ValueError(
                "boundary.where names faces of the box, but a body's boundary is its surface; "
                "remove where"
            )
        return self

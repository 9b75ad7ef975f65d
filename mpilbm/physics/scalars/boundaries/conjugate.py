"""Conduction of the scalar inside a body."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.quantity import DIFFUSIVITY
from mpilbm.core.registry import Parameters, register
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.scalars.boundaries import RETURNING, Numbers, ScalarBoundary


class Conducting(Parameters):
    """The material of a body that conducts a scalar."""

    diffusivity: Annotated[float, DIFFUSIVITY] = Field(
        gt=0, description="diffusivity of the body", examples=[0.1]
    )
    capacity: float = Field(
        1.0,
        gt=0,
        description="heat capacity per volume, relative to that of the fluid; its conductivity "
        "relative to that of the fluid is capacity times the ratio of diffusivities",
        examples=[3.0],
    )


@register("scalar_boundaries", "conjugate")
class Conjugate(ScalarBoundary):
    """The body conducts the scalar: C d(phi)/dt = div(C D grad phi) + S inside of it.

    The populations add up to the enthalpy h = C phi, with C = 1 in the fluid and

        geq_i = w_i phi (1 + c_i.u / cs2 + …) + delta_i0 (C - 1) phi

    with u = 0 in the body, and C D = cs2 (1/omega_minus - 1/2). phi and its flux are continuous at
    the surface, which lies half a link outside the cells of the fluid, without a condition there:
    the populations that pass it do not contain C. h is conserved exactly. Only for bodies.
    Second order at flat surfaces half-way between cells, first order at curved ones, which consist
    of faces of cells.
    [Korba & Li 2019, doi 10.5772/intechopen.86252, compare treatments of such surfaces]
    """

    conjugate: Conducting = Field(
        description="the material of the body", examples=[{"diffusivity": 0.1, "capacity": 3.0}]
    )

    conducts = True
    declares = RETURNING

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """No value: the initial values of the body are those of its cells."""
        return np.empty(0)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link; no link of a fluid cell belongs to the body."""
        return {i: cell.left[cell.lattice.opp[i]] for i in range(1, cell.lattice.Q)}

"""Boundary conditions of a scalar: incoming populations along links that leave the fluid.

To add one, add a class derived from `ScalarBoundary` with `@register("scalar_boundaries", name)`
that defines `incoming`; see `Boundary`, whose contract it shares. Here `density` is the scalar in
the cell.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from mpilbm.core.formulas.values import Given, Value
from mpilbm.core.quantity import DIFFUSIVITY, KELVIN, SCALAR_FLUX, TRANSFER
from mpilbm.core.registry import Parameters, register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.algebra import dot
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import Capabilities, EdgeRank, LinkValue, PerLink, Reads

Numbers = Mapping[str, NDArray[Any]]  # those of a condition at its entries, by name

HALF_WAY_FALLBACK = "links have no fluid behind their cell; there the wall lies half-way"
HALF_WAY = Capabilities(reads=Reads.SAME_LINK)
RETURNING = Capabilities(reads=Reads.SAME_LINK, returns=True)
AT_SURFACE = Capabilities(
    per_link=PerLink(value=LinkValue.DISTANCE, fallbacks=(HALF_WAY_FALLBACK,))
)
# Links have the area of the surface: on all bodies, not only on those at whose surface walls lie
WITH_AREA = Capabilities(per_link=PerLink(value=LinkValue.NORMAL))


class ScalarBoundary(Condition):
    """A condition on a scalar. Walls lie half a link outside the cell, or at a body's surface."""

    through: ClassVar[bool] = False  # whether the flow leaves the box there
    on_body: ClassVar[Capabilities | None] = None  # on bodies, if not as on faces: see `of_body`
    _uses_body: bool = PrivateAttr(False)

    @property
    def edge_rank(self) -> EdgeRank:
        """Faces with a given value or flux own the links at edges before outlets."""
        return EdgeRank.OUTLET if self.through else EdgeRank.WALL

    @property
    def capabilities(self) -> Capabilities:
        """`declares`, or `on_body` on a body where the condition uses it."""
        return self.on_body if self._uses_body and self.on_body else self.declares

    def of_body(self, at_surface: bool) -> Self:
        """The condition on a body, whose own boundary lies at its surface or half-way."""
        if self.on_body is None:
            return self
        found = self.model_copy()
        found._uses_body = at_surface or self.on_body is WITH_AREA
        return found

    def structure(self) -> dict[str, Any]:
        """Properties that determine the kernel text, also whether links have data of a body."""
        return super().structure() | {"on_body": self._uses_body}

    def values(self) -> dict[str, Given]:
        """The fields in `numbers`: numbers, formulas and files."""
        return {key: getattr(self, key) for key in self.numbers}

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """The values towards which the condition moves the scalar; none if it moves it nowhere.

        With these of all conditions and with the initial values as limits the scalar obeys the
        maximum principle. None, as here, if the condition supplies the scalar without a limit, or
        this is unknown. `values`: the numbers of `values()` at the entries, by name.
        """
        return None


HALF = Fraction(1, 2)


@register("scalar_boundaries", "value")
class GivenValue(ScalarBoundary):
    """Anti-bounce-back: g_i = -g_out_opp(i) + 2 w_i phi_wall, half a link outside the cell.

    Second order. On a body whose own boundary interpolates, so does this condition: with the
    distance q of the wall along the link, 0 < q <= 1, and j = opp(i)

        g_i(x) = -2q g_out_j(x) - (1 - 2q) g_out_j(x - c_j) + 2 w_i phi_wall          q < 1/2
        g_i(x) = (-g_out_j(x) + (2q - 1) g_out_i(x) + 2 w_i phi_wall) / (2q)          q >= 1/2

    [Ginzburg 2005, Adv. Water Resour. 28, 1196; Li, Mei & Klausner 2013, J. Comput. Phys. 237, 366]
    """

    value: Annotated[Value, KELVIN] = Field(
        description="value at the wall: number, formula or file", examples=[1.0]
    )

    numbers = ("value",)
    declares = HALF_WAY
    on_body = AT_SURFACE

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """The given values."""
        return values["value"]

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The value at the wall, from the outgoing population of the same link."""
        found = {}
        for i in range(1, cell.lattice.Q):
            j, twice = cell.lattice.opp[i], 2 * cell.lattice.w[i] * cell.values["value"]
            if not self._uses_body:
                found[i] = -cell.left[j] + cell.at_wall(i, twice)
                continue
            q = cell.link(i)
            given = cell.at_wall(i, twice, q)
            near = -2 * q * cell.left[j] - (1 - 2 * q) * cell.arrives[j] + given
            far = (-cell.left[j] + (2 * q - 1) * cell.left[i] + given) / (2 * q)
            found[i] = cell.below(q, HALF, near, far)
        return found


@register("scalar_boundaries", "flux")
class GivenFlux(ScalarBoundary):
    """Bounce-back with a source: g_i = g_out_opp(i) + 2 w_i flux / cs2.

    `flux` is the flux into the fluid, per area of the wall and step, -D d(phi)/dn with the normal n
    into the fluid; in a fluid without motion normal to the wall. The wall lies half a link outside
    the cell. Second order on faces of the box; the scalar is conserved exactly. On a body with a
    surface the source is 2 w_i (c_i.n) flux / cs2, so that the links together have the area of the
    surface. On a mask the area is that of the faces of its cells, up to 1.5 times as large.
    """

    flux: Annotated[Value, SCALAR_FLUX] = Field(
        0.0, description="flux into the fluid; 0: adiabatic", examples=[0.001]
    )

    numbers = ("flux",)
    declares = RETURNING
    on_body = WITH_AREA

    @property
    def capabilities(self) -> Capabilities:
        """With a flux from a body, the normal of its surface at each link."""
        return super().capabilities if self.flux != 0 else RETURNING

    def values(self) -> dict[str, Given]:
        """The flux; empty for an adiabatic wall, which only reflects."""
        return super().values() if self.flux != 0 else {}

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """No value at an adiabatic wall; None with a flux."""
        return None if any(np.any(flux) for flux in values.values()) else np.empty(0)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, and the flux."""
        lattice, flux, found = cell.lattice, cell.values.get("flux", 0), {}
        for i in range(1, lattice.Q):
            area = cell.link(i) if self.capabilities.per_link else 1
            added = 2 * lattice.w[i] * area * flux / lattice.cs2
            found[i] = cell.left[lattice.opp[i]] + cell.at_wall(i, added)
        return found


@register("scalar_boundaries", "robin")
class Robin(ScalarBoundary):
    """The flux h (ambient - phi_wall) enters the fluid, phi_wall half a link outside the cell.

    With j = opp(i), phi_wall = g_out_j / w_i + flux / cs2 follows from the populations of the link,
    so that flux = h (ambient - g_out_j / w_i) / (1 + h / cs2), and g_i = g_out_j + 2 w_i flux / cs2
    as for a given flux. Second order on faces of the box. On a body with a surface the terms with
    flux and h have the factor c_i.n, see `flux`.
    """

    h: Annotated[Value, TRANSFER] = Field(
        description="transfer coefficient, cells/step", examples=[0.01]
    )
    ambient: Annotated[Value, KELVIN] = Field(
        0.0, description="value of the surroundings", examples=[0.5]
    )

    numbers = ("h", "ambient")
    declares = HALF_WAY
    on_body = WITH_AREA

    def problems(self, case: Case) -> list[str]:
        """Errors of all conditions, and a negative transfer coefficient."""
        negative = isinstance(self.h, int | float) and self.h < 0
        found = [f"h: found {self.h:g}; allowed: 0 or more; remove the sign"] if negative else []
        return super().problems(case) + found

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """The values of the surroundings; None where a coefficient is negative."""
        return values["ambient"] if (values["h"] >= 0).all() else None

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, and the flux."""
        lattice, (h, ambient), found = cell.lattice, cell.values.values(), {}
        for i in range(1, lattice.Q):
            w, left = lattice.w[i], cell.left[lattice.opp[i]]
            area = cell.link(i) if self._uses_body else 1
            flux = h * (ambient - left / w) / (1 + area * h / lattice.cs2)
            found[i] = left + cell.at_wall(i, 2 * w * area * flux / lattice.cs2)
        return found


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


@register("scalar_boundaries", "outflow")
class ScalarOutflow(ScalarBoundary):
    """g_i(x) = g_i(x + n) where c_i . n > 0 and n is the inward normal: no gradient normal to it.

    For faces through which fluid leaves the box.
    """

    through = True
    declares = Capabilities(normal=True, inward=1)

    def held(self, values: Numbers) -> NDArray[Any] | None:
        """No value."""
        return np.empty(0)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The populations that arrive in the cell inwards."""
        found = cell.inward(1).arrives
        return {i: found[i] for i, c in enumerate(cell.lattice.c) if dot(c, cell.normal) > 0}

"""Boundary conditions of a scalar: incoming populations along links that leave the fluid.

To add one, write one file with a class derived from `ScalarBoundary` and
`@register("scalar_boundaries", name)` that defines `incoming`; see `Boundary`, whose contract it
shares. Here `density` is the scalar in the cell.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from pydantic import PrivateAttr

from mpilbm.core.formulas.values import Given
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

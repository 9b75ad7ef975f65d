"""Shapes made of others: their union, or the first one without the others."""

from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.registry import Choice, register
from mpilbm.model.case import Case
from mpilbm.model.findings import Finding
from mpilbm.solids import Floats
from mpilbm.solids.periodic_images import ShapeInBox
from mpilbm.solids.shapes import Corners, Flow, Shape


class Combined(Shape):
    """Base class of shapes made of several shapes."""

    of: tuple[Annotated[Shape, Choice("shapes")], ...] = Field(
        min_length=2,
        description="the shapes",
        examples=[
            [
                {"name": "sphere", "centre": [16, 16, 16], "radius": 8},
                {"name": "box", "lower": [16, 0, 0], "upper": [32, 32, 32]},
            ]
        ],
    )

    @property
    def has_surface(self) -> bool:
        """Whether all parts have one: with voxels among them, all walls are half-way."""
        return all(part.has_surface for part in self.of)

    @property
    def cuts(self) -> bool:
        """Whether a part has sheets."""
        return any(part.cuts for part in self.of)

    def files(self) -> list[Path]:
        """The files of all parts."""
        return [file for part in self.of for file in part.files()]

    @property
    def roughness(self) -> float:
        """The roughness of the roughest part."""
        return max(part.roughness for part in self.of)

    def resolved(self, case: Case) -> Self:
        """The shape of the resolved parts."""
        return self.model_copy(update={"of": tuple(part.resolved(case) for part in self.of)})

    def problems(self, case: Case) -> list[str]:
        """The errors of the parts."""
        return [f"of.{k}: {each}" for k, part in enumerate(self.of) for each in part.problems(case)]

    def problems_in_cells(self, case: Case) -> list[str]:
        """The errors of the parts that follow from the cells."""
        parts = enumerate(self.of)
        return [f"of.{k}: {each}" for k, part in parts for each in part.problems_in_cells(case)]

    def findings(self, case: Case, where: str, flow: Flow) -> list[Finding]:
        """The findings about the parts."""
        parts = enumerate(self.of)
        return [each for k, part in parts for each in part.findings(case, f"{where}.of.{k}", flow)]

    def contents(self) -> list[tuple[str, str]]:
        """The contents of the files of all parts."""
        return [each for part in self.of for each in part.contents()]


@register("shapes", "union")
class Union(Combined):
    """All points that are in any of the shapes `of`; one body, with one boundary."""

    def in_box(self, domain: Any) -> ShapeInBox:
        """The images of all parts."""
        return ShapeInBox.union([part.in_box(domain) for part in self.of], domain)

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """In any of them."""
        return reduce(or_, (part.inside(x, y, z) for part in self.of))

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The least of the parts; exact outside."""
        return reduce(np.minimum, (part.signed_distance(points) for part in self.of))

    def bounds(self) -> Corners:
        """A box around the bounds of the parts."""
        lower, upper = zip(*(part.bounds() for part in self.of), strict=True)
        return tuple(map(min, zip(*lower, strict=True))), tuple(map(max, zip(*upper, strict=True)))


@register("shapes", "difference")
class Difference(Combined):
    """All points in the first of the shapes `of` that are in none of the others."""

    @property
    def cuts(self) -> bool:
        """Sheets in a difference are refused."""
        return False

    def problems(self, case: Case) -> list[str]:
        """Also those of sheets, which cannot be cut."""
        text = "has sheets (thin = true), which a difference cannot cut; remove thin, or make the "
        text += "sheet a body of its own"
        sheets = [f"of.{k}: {text}" for k, part in enumerate(self.of) if part.cuts]
        return super().problems(case) + sheets

    def in_box(self, domain: Any) -> ShapeInBox:
        """The images of the first without those of the others."""
        first, *others = (part.in_box(domain) for part in self.of)
        return ShapeInBox.difference(first, others, domain)

    def inside(self, x: Any, y: Any, z: Any = None) -> Any:
        """In the first only."""
        first, *others = (part.inside(x, y, z) for part in self.of)
        return first & ~reduce(or_, others)

    def signed_distance(self, points: NDArray[Any]) -> Floats:
        """The largest of that of the first and of minus those of the others; exact inside."""
        first, *others = (part.signed_distance(points) for part in self.of)
        return reduce(np.maximum, (-each for each in others), first)

    def bounds(self) -> Corners:
        """The bounds of the first."""
        return self.of[0].bounds()

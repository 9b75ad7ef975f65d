"""Shapes made of others: what is in any of them, what is in the first alone."""

from pydantic import Field

from mpilbm.choice import choice
from mpilbm.geometry.shapes import Shape
from mpilbm.registry import register


class Combined(Shape):
    """Of several shapes."""

    of: tuple[choice("shapes"), ...] = Field(
        min_length=2,
        description="the shapes",
        examples=[
            [
                {"name": "sphere", "centre": [16, 16, 16], "radius": 8},
                {"name": "box", "lower": [16, 0, 0], "upper": [32, 32, 32]},
            ]
        ],
    )

    def problems(self, case):
        """Those of the parts."""
        return [f"of.{k}: {each}" for k, part in enumerate(self.of) for each in part.problems(case)]


@register("shapes", "union")
class Union(Combined):
    """What is in any of the shapes `of`; one body, with one boundary."""

    def inside(self, x, y, z=None):
        """In any."""
        result = False
        for part in self.of:
            result = result | part.inside(x, y, z)
        return result

    def bounds(self):
        """A box around those of the parts."""
        lower, upper = zip(*(part.bounds() for part in self.of), strict=True)
        return tuple(map(min, zip(*lower, strict=True))), tuple(map(max, zip(*upper, strict=True)))


@register("shapes", "difference")
class Difference(Combined):
    """What is in the first of the shapes `of`, and in none of the others."""

    def inside(self, x, y, z=None):
        """In the first alone."""
        first, *others = self.of
        result = first.inside(x, y, z)
        for part in others:
            result = result & ~part.inside(x, y, z)
        return result

    def bounds(self):
        """Those of the first."""
        return self.of[0].bounds()

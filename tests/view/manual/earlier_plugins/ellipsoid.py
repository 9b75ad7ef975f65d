"""An ellipsoid with axes along x, y and z."""

from typing import Annotated

from mpilbm.plugin import Shape, quantity, register


@register("shapes", "ellipsoid")
class Ellipsoid(Shape):
    """sum_a ((x_a - centre_a) / radii_a)² <= 1; in 2D an ellipse."""

    centre: Annotated[tuple[float, ...], quantity.LENGTH]  # with [units] also "25 mm"
    radii: Annotated[tuple[float, ...], quantity.LENGTH]

    def inside(self, x, y, z=None):
        """Bool array for points (arrays that broadcast)."""
        points = (x, y) if z is None else (x, y, z)
        triples = zip(points, self.centre, self.radii, strict=True)
        return sum(((p - c) / r) ** 2 for p, c, r in triples) <= 1

    def bounds(self):
        """Lower and upper corner of a box around it."""
        pairs = list(zip(self.centre, self.radii, strict=True))
        return tuple(c - r for c, r in pairs), tuple(c + r for c, r in pairs)

    def problems(self, case):
        """A wrong number of components."""
        return self.wrong_lengths(case, "centre", "radii")

"""Nine velocities in two dimensions."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import Lattice, by_speed, paired


@register("lattices", "D2Q9")
@register("scalar_lattices", "D2Q9")
class D2Q9(Lattice):
    """Nine velocities in two dimensions. [Qian, d'Humières & Lallemand 1992]."""

    c = paired((1, 0), (0, 1), (1, 1), (1, -1))
    w = by_speed(c, ("4/9", "1/9", "1/36"))

"""Five velocities: rest and axes."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import Lattice, by_speed, paired


@register("scalar_lattices", "D2Q5")
class D2Q5(Lattice):
    """Five velocities in two dimensions: rest, axes; cs2 = 1/3."""

    c = paired((1, 0), (0, 1))
    w = by_speed(c, ("1/3", "1/6"))
    isotropy = 2

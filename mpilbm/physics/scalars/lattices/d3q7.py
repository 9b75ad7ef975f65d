"""Seven velocities: rest and axes."""

from mpilbm.physics.lattices import Lattice, by_speed, paired
from mpilbm.registry import register


@register("scalar_lattices", "D3Q7")
class D3Q7(Lattice):
    """Seven velocities in three dimensions: rest, axes; cs2 = 1/4."""

    c = paired((1, 0, 0), (0, 1, 0), (0, 0, 1))
    w = by_speed(c, ("1/4", "1/8"))
    isotropy = 2

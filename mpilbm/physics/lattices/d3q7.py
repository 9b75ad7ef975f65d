"""Seven velocities: rest and axes."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import Lattice, by_speed, paired


@register("scalar_lattices", "D3Q7")
class D3Q7(Lattice):
    """Seven velocities in three dimensions: rest, axes; cs2 = 1/4."""

    c = paired((1, 0, 0), (0, 1, 0), (0, 0, 1))
    w = by_speed(c, ("1/4", "1/8"))
    isotropy = 2

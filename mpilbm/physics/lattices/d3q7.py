"""Seven velocities: rest and axes."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import ALONG_AXES, Lattice, by_speed, paired


@register("scalar_lattices", "D3Q7")
class D3Q7(Lattice):
    """Seven velocities in three dimensions: rest, axes; cs2 = 1/4."""

    c = paired(*ALONG_AXES)
    w = by_speed(c, ("1/4", "1/8"))
    isotropy = 2

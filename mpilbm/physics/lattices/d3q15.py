"""Fifteen velocities: axes and space diagonals."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import ALONG_AXES, SPACE_DIAGONALS, Lattice, by_speed, paired


@register("lattices", "D3Q15")
@register("scalar_lattices", "D3Q15")
class D3Q15(Lattice):
    """Fifteen velocities in three dimensions: rest, axes, space diagonals. [Qian et al. 1992]."""

    c = paired(*ALONG_AXES, *SPACE_DIAGONALS)
    w = by_speed(c, ("2/9", "1/9", "0", "1/72"))

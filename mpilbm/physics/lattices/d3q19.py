"""Nineteen velocities: axes and face diagonals."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import ALONG_AXES, FACE_DIAGONALS, Lattice, by_speed, paired


@register("lattices", "D3Q19")
@register("scalar_lattices", "D3Q19")
class D3Q19(Lattice):
    """Nineteen velocities in three dimensions; the default choice in 3D. [Qian et al. 1992]."""

    c = paired(*ALONG_AXES, *FACE_DIAGONALS)
    w = by_speed(c, ("1/3", "1/18", "1/36"))

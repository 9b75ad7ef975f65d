"""Nineteen velocities: axes and face diagonals."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import Lattice, by_speed, paired


@register("lattices", "D3Q19")
@register("scalar_lattices", "D3Q19")
class D3Q19(Lattice):
    """Nineteen velocities in three dimensions; the default choice in 3D. [Qian et al. 1992]."""

    c = paired(
        (1, 0, 0), (0, 1, 0), (0, 0, 1),
        (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1),
    )  # fmt: skip
    w = by_speed(c, ("1/3", "1/18", "1/36"))

"""Twenty-seven velocities: the full cube."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import (
    ALONG_AXES,
    FACE_DIAGONALS,
    SPACE_DIAGONALS,
    Lattice,
    by_speed,
    paired,
)


@register("lattices", "D3Q27")
class D3Q27(Lattice):
    """Twenty-seven velocities in three dimensions, the most isotropic of these lattices.

    [He & Luo 1997, Phys. Rev. E 56, 6811].
    """

    c = paired(*ALONG_AXES, *FACE_DIAGONALS, *SPACE_DIAGONALS)
    w = by_speed(c, ("8/27", "2/27", "1/54", "1/216"))

"""Twenty-seven velocities: the full cube."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import Lattice, by_speed, paired


@register("lattices", "D3Q27")
class D3Q27(Lattice):
    """Twenty-seven velocities in three dimensions, the most isotropic of these lattices.

    [He & Luo 1997, Phys. Rev. E 56, 6811].
    """

    c = paired(
        (1, 0, 0), (0, 1, 0), (0, 0, 1),
        (1, 1, 0), (1, -1, 0), (1, 0, 1), (1, 0, -1), (0, 1, 1), (0, 1, -1),
        (1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1),
    )  # fmt: skip
    w = by_speed(c, ("8/27", "2/27", "1/54", "1/216"))

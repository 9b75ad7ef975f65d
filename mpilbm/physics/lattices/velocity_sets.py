"""The velocity sets of the package: half of the velocities of each, and the weights by |c_i|^2."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices import (
    ALONG_AXES,
    FACE_DIAGONALS,
    SPACE_DIAGONALS,
    Lattice,
    by_speed,
    paired,
)


@register("scalar_lattices", "D2Q5")
class D2Q5(Lattice):
    """Five velocities in two dimensions: rest, axes; cs2 = 1/3."""

    c = paired((1, 0), (0, 1))
    w = by_speed(c, ("1/3", "1/6"))
    isotropy = 2


@register("lattices", "D2Q9")
@register("scalar_lattices", "D2Q9")
class D2Q9(Lattice):
    """Nine velocities in two dimensions. [Qian, d'Humières & Lallemand 1992]."""

    c = paired((1, 0), (0, 1), (1, 1), (1, -1))
    w = by_speed(c, ("4/9", "1/9", "1/36"))


@register("scalar_lattices", "D3Q7")
class D3Q7(Lattice):
    """Seven velocities in three dimensions: rest, axes; cs2 = 1/4."""

    c = paired(*ALONG_AXES)
    w = by_speed(c, ("1/4", "1/8"))
    isotropy = 2


@register("lattices", "D3Q13")
class D3Q13(Lattice):
    """Thirteen velocities, the fewest in three dimensions, on the nodes with even x + y + z.

    A face-centred cubic lattice. Each cell is a rhombic dodecahedron of volume 2, so a box has half
    as many cells as with D3Q19 and needs a third of the memory. Isotropic to order 2 only; use the
    collision `mrt`. [d'Humières, Bouzidi & Lallemand 2001, Phys. Rev. E 63, 066702; Tölke &
    Krafczyk 2008]
    """

    c = paired(*FACE_DIAGONALS)
    w = by_speed(c, ("1/2", "0", "1/24"))
    isotropy = 2
    staggered = True


@register("lattices", "D3Q15")
@register("scalar_lattices", "D3Q15")
class D3Q15(Lattice):
    """Fifteen velocities in three dimensions: rest, axes, space diagonals. [Qian et al. 1992]."""

    c = paired(*ALONG_AXES, *SPACE_DIAGONALS)
    w = by_speed(c, ("2/9", "1/9", "0", "1/72"))


@register("lattices", "D3Q19")
@register("scalar_lattices", "D3Q19")
class D3Q19(Lattice):
    """Nineteen velocities in three dimensions; the default choice in 3D. [Qian et al. 1992]."""

    c = paired(*ALONG_AXES, *FACE_DIAGONALS)
    w = by_speed(c, ("1/3", "1/18", "1/36"))


@register("lattices", "D3Q27")
class D3Q27(Lattice):
    """Twenty-seven velocities in three dimensions, the most isotropic of these lattices.

    [He & Luo 1997, Phys. Rev. E 56, 6811].
    """

    c = paired(*ALONG_AXES, *FACE_DIAGONALS, *SPACE_DIAGONALS)
    w = by_speed(c, ("8/27", "2/27", "1/54", "1/216"))

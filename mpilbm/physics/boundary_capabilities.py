"""Capabilities of a boundary class: the populations that it supplies and the data that it reads."""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class Reads(Enum):
    """The fluid data that `Boundary.incoming` reads; each member includes the previous ones."""

    SAME_LINK = auto()  # the outgoing population of the same link, and the given values
    OUTGOING = auto()  # outgoing populations of the cell
    CELL = auto()  # arriving populations, density, velocity and force; other cells


class Beyond(Enum):
    """The medium beyond the faces at which a boundary acts."""

    WALL = auto()  # no fluid: a wall, an inlet or an outlet
    MIRROR = auto()  # the mirror image of the fluid: free slip, no drag
    OPPOSITE_FACE = auto()  # the fluid at the opposite face: a pair of periodic faces


class LinkValue(Enum):
    """The value per link that a boundary reads (`cell.link`), computed in solids/wall_distance.py.

    q is the distance from the cell to the wall, divided by the length of the link.
    """

    DISTANCE = auto()  # q; 1/2 where q < 1/2 and the cell has no neighbour for an interpolation
    DISTANCE_CENTRAL = auto()  # q; 1/2 where the cell has no neighbour for an interpolation
    DISTANCE_QUADRATIC = auto()  # as DISTANCE, but negative where the third cell is missing
    DISTANCE_ONLY = auto()  # q, independent of the neighbours of the cell
    NORMAL = auto()  # c_i.n with the normal n of the surface; 1 where nothing defines a surface
    MIRROR_AXES = auto()  # the sum of 2^axis over the axes along which the link is mirrored


class Behind(Enum):
    """The data that a boundary reads from the cells x + c_i and x + 2 c_i, away from the wall."""

    NOTHING = auto()
    POPULATIONS = auto()  # `cell.behind`
    VELOCITY = auto()  # `cell.u_behind`


@dataclass(frozen=True, kw_only=True)
class PerLink:
    """The data that a boundary reads for each of its links.

    value      the value of the link
    behind     data of the cells on the side of the cell away from the wall
    fallbacks  one sentence for the user for each case in which the data are missing
    """

    value: LinkValue
    behind: Behind = Behind.NOTHING
    fallbacks: tuple[str, ...] = ()


INWARD_FALLBACK = (
    "inward cells that it reads are not fluid; it uses the nearest fluid cell before them"
)

CORNER_FALLBACK = (
    "cells of a body are at the end of a wall parallel to the cells, at an inner edge, or at a "
    "slope of a mask or of voxels: there it acts as bounce_back"
)

LAYER_FALLBACK = (
    "cells of curved walls have no fluid cell 1.5 to 3.5 cells above the wall that is not next to "
    "another wall: their friction is lost"
)


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The capabilities of a boundary and the data that it requires.

    normal        the boundary needs the inward normal: it acts on faces of the box, not on bodies
    whole_cell    it sets all populations of the cell except along links of other boundaries
    rest          besides its links it sets the population at rest, if no other boundary does
    conserves     the mass of a closed flow is constant to rounding
    inward        number of cells that it reads inwards along the normal (`cell.inward`): 0, 1 or 2
    samples       largest number of cells from a cell next to a body to the one whose velocity it
                  reads, along the normal of the wall (`cell.surface`); None: it reads none
    layer         it acts in fluid cells above the walls of a body (`cell.layer`)
    per_link      data that it reads for each link; None: no data
    beyond        the medium beyond its faces
    reads         the fluid data that it reads
    returns       each incoming population is the outgoing one of the same link, plus the motion of
                  the wall or terms with given values; kernels may then replace `incoming` by this
    in_cells      it acts in the cells of the body by their solid shares, instead of on links
    weight        with `in_cells`: the name that `collided` gives to `cell.let` for a value that is
                  0 in cells without a share, which make the outgoing populations those of the
                  fluid; kernels may leave it out there. None: there is no such value
    read_by_others  boundaries in the same cells, and with these cells inwards, read the
                  populations that it supplies as if they streamed in; it reads none of others
    drifts        without a given density the mass may grow without bound
    fails_from    smallest grid Reynolds number u/nu at which measured flows failed with this
                  boundary as inlet or outlet, but were stable with `equilibrium`; None: not
                  measured
    """

    normal: bool = False
    whole_cell: bool = False
    rest: bool = False
    conserves: bool = True
    inward: int = 0
    samples: int | None = None
    layer: bool = False
    per_link: PerLink | None = None
    beyond: Beyond = Beyond.WALL
    reads: Reads = Reads.CELL
    returns: bool = False
    in_cells: bool = False
    weight: str | None = None
    read_by_others: bool = False
    drifts: bool = False
    fails_from: float | None = None

    @property
    def link_value(self) -> LinkValue | None:
        """The value per link that the boundary reads; None if it reads no such value."""
        return self.per_link.value if self.per_link else None

    @property
    def sets_rest(self) -> bool:
        """Whether the boundary sets populations at rest."""
        return self.whole_cell or self.rest

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Sentences for the user: the substitutes for cells or values that are missing."""
        of_links = self.per_link.fallbacks if self.per_link else ()
        inward = (INWARD_FALLBACK,) * bool(self.inward or self.samples)
        return inward + (CORNER_FALLBACK, LAYER_FALLBACK) * (self.samples is not None) + of_links

    @property
    def uses_distance(self) -> bool:
        """Whether the boundary reads the distance of the wall along each link."""
        return self.link_value not in (None, LinkValue.MIRROR_AXES, LinkValue.NORMAL)

    @property
    def wall_depends_on_viscosity(self) -> bool:
        """Whether the effective position of a curved wall in creeping flow depends on viscosity.

        With half-way walls and the central interpolation it does not, if the collision keeps it.
        """
        return self.uses_distance and self.link_value is not LinkValue.DISTANCE_CENTRAL

    @property
    def behind(self) -> Behind:
        """The data that the boundary reads from cells away from the wall, see Behind."""
        return self.per_link.behind if self.per_link else Behind.NOTHING

    @property
    def planes_behind(self) -> int:
        """Largest distance, in planes, of what the boundary reads along links and at samples.

        Populations that left a cell may lie one plane farther than the cell.
        """
        along_links = 0 if self.behind is Behind.NOTHING else 2
        return max(along_links, 0 if self.samples is None else 1 + self.samples)

    @property
    def velocities_at(self) -> int | None:
        """Largest distance, in planes, of cells whose velocities it reads; None: it reads none."""
        return 1 if self.behind is Behind.VELOCITY else self.samples


class FaceFlow(Enum):
    """Whether fluid passes a face of the box, and what determines its velocity."""

    CLOSED = auto()  # no fluid passes
    GIVEN = auto()  # the case gives the velocity
    FREE = auto()  # the flow determines the velocity

    @property
    def crosses(self) -> bool:
        """Whether fluid passes the face."""
        return self is not FaceFlow.CLOSED


class EdgeRank(IntEnum):
    """The kinds of faces, by increasing claim to the links at edges that two faces share.

    Compared between faces of equal priority that are both on-site or both not.
    """

    MIRROR = 0
    OUTLET = 1  # the flow determines the velocity
    INLET = 2  # the case gives a velocity through the face
    MOVING_WALL = 3
    WALL = 4  # at rest

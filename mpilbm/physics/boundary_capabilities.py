"""What a boundary class declares: which links it supplies, and what it reads to do so."""

from dataclasses import dataclass
from enum import Enum, auto


class Reads(Enum):
    """What `Boundary.incoming` reads of the fluid; each member includes those before it."""

    SAME_LINK = auto()  # the outgoing population of the same link, and the given values
    OUTGOING = auto()  # outgoing populations of the cell
    CELL = auto()  # arriving populations, density, velocity, force, other cells


class Beyond(Enum):
    """What lies beyond the faces at which a boundary acts."""

    WALL = auto()  # nothing: a wall, an inlet or an outlet
    MIRROR = auto()  # the mirror image of the fluid: free slip, no drag
    OPPOSITE_FACE = auto()  # the fluid at the opposite face: a pair of periodic faces


class LinkValue(Enum):
    """The value that a boundary reads of each link (`cell.link`), see links/wall_distance.py."""

    DISTANCE = auto()  # q; 1/2 where q < 1/2 and the cell has no neighbour for an interpolation
    DISTANCE_QUADRATIC = auto()  # the same, negative where a third cell is missing
    DISTANCE_ONLY = auto()  # q, whatever lies around the cell
    MIRROR_AXES = auto()  # the sum of 2^axis over the axes along which the link is mirrored


class Behind(Enum):
    """What a boundary reads of the cells x + c_i and x + 2 c_i, on the other side of its cell."""

    NOTHING = auto()
    POPULATIONS = auto()  # `cell.behind`
    VELOCITY = auto()  # `cell.u_behind`


@dataclass(frozen=True, kw_only=True)
class PerLink:
    """What a boundary reads of each of its links.

    fallbacks: sentences for the user, one for each way in which the value can be missing.
    """

    value: LinkValue
    behind: Behind = Behind.NOTHING
    fallbacks: tuple[str, ...] = ()


INWARD_FALLBACK = "cells to which it looks inwards are no fluid; it takes the nearest before them"


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a boundary can do and what it needs.

    normal        it needs the inward normal, so it acts on faces of the box only, not on bodies
    whole_cell    it sets all populations of the cell except along links of other boundaries
    inward        number of cells that it reads inwards along the normal (`cell.inward`): 0, 1 or 2
    per_link      what it reads of each link; None: nothing
    beyond        what lies beyond its faces
    reads         what it reads of the fluid
    drifts        without a given density the mass may grow without bound
    fails_from    grid Reynolds number u/nu from which on measured flows failed with it as inlet or
                  outlet although they are stable with `equilibrium`; None: not measured
    """

    normal: bool = False
    whole_cell: bool = False
    inward: int = 0
    per_link: PerLink | None = None
    beyond: Beyond = Beyond.WALL
    reads: Reads = Reads.CELL
    drifts: bool = False
    fails_from: float | None = None

    @property
    def link_value(self) -> LinkValue | None:
        """The value that it reads of each link, if any."""
        return self.per_link.value if self.per_link else None

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What it does where a cell or value that it needs is missing: sentences for the user."""
        of_links = self.per_link.fallbacks if self.per_link else ()
        return (INWARD_FALLBACK,) * bool(self.inward) + of_links

    @property
    def uses_distance(self) -> bool:
        """Whether it reads how far the wall is along each link."""
        return self.link_value not in (None, LinkValue.MIRROR_AXES)

    @property
    def behind(self) -> Behind:
        """What it reads of cells on the other side of its cell."""
        return self.per_link.behind if self.per_link else Behind.NOTHING

    @property
    def planes_behind(self) -> int:
        """How many planes away the cells that it reads along its links may lie."""
        return 0 if self.behind is Behind.NOTHING else 2


class FaceFlow(Enum):
    """How fluid passes a face of the box."""

    CLOSED = auto()  # not at all
    GIVEN = auto()  # with a velocity that the case gives
    FREE = auto()  # with the velocity that the flow has there

    @property
    def crosses(self) -> bool:
        """Whether fluid passes the face."""
        return self is not FaceFlow.CLOSED

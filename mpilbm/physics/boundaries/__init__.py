"""Boundary conditions: incoming populations of a cell as functions of outgoing ones.

One file for each condition. A boundary passes through four stages: it is declared in this folder;
solids/ determines the links that it owns; codegen/boundary_kernels.py prints its kernel; and
solver/boundary_lists.py runs the kernel.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import Field, model_validator

from mpilbm.core import quantity
from mpilbm.core.formulas.parser import FormulaError
from mpilbm.core.formulas.values import CellValue, Given, GivenVector, has_ramp, ramped
from mpilbm.core.quantity import STEPS, WETTING
from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.model.cell import Cell, PartialCell
from mpilbm.model.expressions import Expression, Incoming
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.physics.boundary_capabilities import Beyond, Capabilities, EdgeRank, FaceFlow
from mpilbm.physics.lattices import Lattice, undefined

Face = Literal["x-", "x+", "y-", "y+", "z-", "z+"]
Position = Literal["half", "node"]
FACES: tuple[str, ...] = get_args(Face)

VELOCITY = "velocity, one entry per dimension: numbers, or formulas of x, y, z, t; or a file"
RAMP = "steps in which the {} rises smoothly from 0; 0: it is the given one from the start"
DENSITY = "density: number, formula of x, y, z, t, or a file"


class Condition(Parameters):
    """The incoming populations of a cell along links that do not start in a fluid cell.

    The base class of the boundaries of fluids and of scalars. `where` names faces of the box; it is
    empty for the boundary of a body. `priority` orders the boundaries that share links at edges of
    the box, see `precedence`. A subclass defines `incoming` and these class variables:

    wall_at   position of the wall: "half", half a link outside the cell, or "node", the cell's node
    lattices  lattices on which the boundary is defined; None: all lattices
    declares  the data that the boundary requires, see Capabilities
    conducts  the populations are also inside of the body, whose surface is then no boundary
    numbers   fields that are arguments of the kernel, whose text does not depend on them
    """

    where: tuple[Face, ...] = Field(
        (), description="faces of the box; not for a body", examples=[["x-", "x+"]]
    )
    priority: int = Field(
        0,
        description="links at edges of the box belong to the face with the larger priority; if "
        "equal, to on-site faces before half-way walls, and to walls at rest before moving ones",
        examples=[1],
    )

    wall_at: ClassVar[Position] = "half"
    lattices: ClassVar[tuple[str, ...] | None] = None
    declares: ClassVar[Capabilities] = Capabilities()
    conducts: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ()

    @property
    def capabilities(self) -> Capabilities:
        """`declares`; a subclass overrides this where the capabilities depend on parameters."""
        return self.declares

    @property
    def wall_velocity(self) -> tuple[Given, ...] | str | None:
        """The velocity of a moving no-slip wall, as given in the case; otherwise None.

        Where another boundary shares a cell with such a wall, it adds the motion of the wall to
        the populations that the wall reflects.
        """
        return None

    @property
    def layer(self) -> "Condition | None":
        """A further condition, which acts in fluid cells above the walls of a body.

        Its capabilities declare `layer`; solids/wall_layer.py finds the cells.
        """
        return None

    @property
    def reflects(self) -> bool:
        """Whether each incoming population equals the outgoing population of the same link."""
        return self.capabilities.returns and not self.values()

    @property
    def mirrors(self) -> bool:
        """Whether the boundary continues the fluid beyond its faces as a mirror image."""
        return self.capabilities.beyond is Beyond.MIRROR

    @property
    def read_by_others(self) -> bool:
        """Whether other boundaries read the populations that it supplies, see Capabilities."""
        return self.mirrors or self.capabilities.read_by_others

    @property
    def joins_faces(self) -> bool:
        """Whether the boundary acts on populations that cross a pair of periodic faces."""
        return self.capabilities.beyond is Beyond.OPPOSITE_FACE

    @property
    def face_flow(self) -> FaceFlow:
        """Whether fluid passes the faces in `where`, see FaceFlow; CLOSED for bodies."""
        velocity = getattr(self, "velocity", None)
        if velocity is None:
            free = self.where and self.wall_at == "node"
            return FaceFlow.FREE if free else FaceFlow.CLOSED
        normal = [velocity["xyz".index(face[0])] for face in self.where]
        return FaceFlow.GIVEN if any(normal) else FaceFlow.CLOSED

    @property
    def edge_rank(self) -> EdgeRank:
        """The kind of faces in `where`, see EdgeRank; a velocity given as a formula is not 0."""
        if self.mirrors:
            return EdgeRank.MIRROR
        if self.face_flow is FaceFlow.FREE:
            return EdgeRank.OUTLET
        if self.face_flow is FaceFlow.GIVEN:
            return EdgeRank.INLET
        return EdgeRank.MOVING_WALL if any(getattr(self, "velocity", None) or ()) else EdgeRank.WALL

    @property
    def on_site(self) -> bool:
        """Whether the values hold at the nodes and the boundary needs the normal of its faces.

        `equilibrium` needs no normal: it does not compute its values from the links that cross the
        face, and half-way walls own the links that they share.
        """
        return self.capabilities.normal and self.wall_at == "node"

    @property
    def precedence(self) -> tuple[bool, int, bool, EdgeRank, int]:
        """The order of boundaries that share links at edges; the largest owns these links.

        Mirrors come first, then `priority` decides. Then on-site faces own the links: their values
        hold at the node, and follow from the populations along all links that cross the face. Then
        `edge_rank` decides, then the last of the faces in the order x-, x+, y-, y+, z-, z+. No two
        boundaries of a case are equal.
        """
        last = max((FACES.index(face) for face in self.where), default=0)
        return not self.mirrors, self.priority, self.on_site, self.edge_rank, last

    def structure(self) -> dict[str, Any]:
        """The properties that determine the kernel text.

        Boundaries of equal structure share a kernel and a boundary list. The result contains all
        fields except `numbers`, `where`, `wetting`, `priority`, velocity, ramp, profile,
        turbulence, rotation and rho; the names of `values`; the face, if the boundary needs the
        normal; and the form of each formula of x, y and z.
        """
        found: dict[str, Any] = {"given": list(self.values())}
        if self.declares.normal:
            found["face"] = "".join(self.where[:1])
        if forms := {value.name: value.structure() for value in self.given() if value.coordinates}:
            found["formulas"] = forms
        given = {"where", "wetting", "priority", "velocity", "ramp", "profile"}
        given |= {"turbulence", "rotation", "rho"}
        return self.model_dump(exclude=given | set(self.numbers)) | found

    def values(self) -> dict[str, Given]:
        """The numbers, formulas and files of the case, {name: value}; `incoming` uses the names."""
        return {}

    def given(self, D: int = 3) -> list[CellValue]:
        """`values`, each divided into a formula for the kernel and numbers for the host.

        Raises FormulaError for invalid formulas.
        """
        return [CellValue(f"given_{name}", value, D) for name, value in self.values().items()]

    def normal(self, D: int) -> tuple[int, ...]:
        """The inward normal of the face in `where`, a vector of D integers."""
        axis, side = self.where[0]
        return tuple((1 if side == "-" else -1) * (axis == a) for a in "xyz"[:D])

    def state(self, lattice: Lattice) -> tuple[str, ...]:
        """Names of the values that each entry stores between steps, also in checkpoints."""
        return ()

    def begin(self, cell: Cell) -> dict[str, Expression]:
        """The initial state, {name: expression}, from the outgoing populations."""
        return {}

    def follow(self, cell: Cell, enters: Incoming) -> dict[str, Expression]:
        """The state for the next step, {name: expression}; `enters` is the result of `incoming`."""
        return {}

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The incoming population along each c_i that may be missing, {i: expression}.

        These are all i > 0; for a boundary with a normal, all i with c_i . normal > 0; for a
        boundary that sets the whole cell or the population at rest, all i.

        mpilbm/model/cell.py describes `cell`. Each of its members is computed when it is used. The
        class must declare that it reads links or other cells, see Capabilities.
        """
        raise NotImplementedError

    def collided(self, cell: PartialCell) -> list[Expression]:
        """The Q outgoing populations of a cell; of a boundary that acts in cells, see Capabilities.

        mpilbm/model/cell.py describes `cell`. The result depends on values of this cell alone, and
        conserves its mass.
        """
        raise NotImplementedError

    def taken(self, cell: PartialCell) -> list[Expression]:
        """The momentum, D expressions, that `collided` takes from the fluid: the force on the body.

        Without the momentum that the force of the case adds.
        """
        raise NotImplementedError

    def problems(self, case: Case) -> list[str]:
        """Errors: an unsupported lattice, invalid formulas, values out of range, wrong lengths."""
        found = []
        for name, value in self.values().items():
            try:
                CellValue(name, value, case.dimensions)
            except FormulaError as error:
                found.append(f"{key_of(name)}: {error}")
        if self.capabilities.normal and not self.where:
            found.append(
                f"{self.name} needs a face of the box, bodies have none; allowed here: "
                f"boundaries without a normal, like bounce_back"
            )
        found += undefined(self.name, case.lattice, self.lattices)
        if self.priority and (self.mirrors or self.joins_faces or not self.where):
            why = f"the links of {self.name} at edges belong to the other face"
            why += ", if that is no mirror" * self.mirrors
            if not self.where:
                why = "it orders the faces of the box, and names none in where"
            found.append(f"priority: found {self.priority}; {why}; remove it")
        return found


class Boundary(Condition):
    """A boundary condition of a fluid; `wetting` holds the wall values of a coupling's fields."""

    wetting: Annotated[dict[str, float] | None, WETTING] = Field(
        None,
        description="coupled fluids: a density per fluid (shan_chen), or the contact angle of the "
        "first fluid in degrees (free_energy)",
        examples=[{"angle": 60}],
    )

    def problems(self, case: Case) -> list[str]:
        """Errors, also: wetting of a single fluid, densities out of range, wrong velocities."""
        found = super().problems(case)
        if self.wetting is not None and case.coupling is None:
            found.append("wetting: needs coupled fluids; add [coupling] or remove it")
        rho = getattr(self, "rho", None)
        if isinstance(rho, float) and not LEAST_DENSITY <= rho <= LARGEST_DENSITY:
            found.append(f"rho: found {rho:g}; allowed: {DENSITIES}; 1 is usual")
        velocity = getattr(self, "velocity", None)
        if velocity is not None and len(velocity) != case.lattice.D:
            given = counted(len(velocity), "component")
            found.append(f"velocity: found {given}; allowed: {case.lattice.D}")
        return found


class Driven(Boundary):
    """A boundary whose velocity may be given, and may rise from 0 at the start.

    In the first `ramp` steps it is s(t) times the given velocity, see mpilbm/core/formulas/ramp.py;
    `velocity` has the values after them, by which the checks of a case judge it.
    """

    velocity: Annotated[GivenVector | None, quantity.VELOCITY] = Field(
        None, description=VELOCITY, examples=[[0.05, 0]]
    )
    ramp: Annotated[int, STEPS] = Field(
        0, ge=0, lt=2**31, description=RAMP.format("velocity"), examples=[2000]
    )

    @model_validator(mode="after")
    def _has_velocity(self) -> Self:
        """Refuse a ramp without a velocity."""
        if self.ramp and self.velocity is None and getattr(self, "rotation", None) is None:
            raise ValueError("has a ramp but no velocity; remove the ramp")
        return self

    @property
    def present_velocity(self) -> tuple[Given, ...]:
        """The components of the velocity with the ramp; () without a velocity."""
        return tuple(ramped(value, self.ramp) for value in self.velocity or ())

    def problems(self, case: Case) -> list[str]:
        """Errors, also: a ramp of a velocity with a value for each cell."""
        found = super().problems(case)
        if self.ramp and not all(map(has_ramp, self.velocity or ())):
            found.append(
                "ramp: found a velocity with a value for each cell; allowed with a ramp: numbers, "
                "formulas, functions and a file.csv of times; give one of these, or remove the ramp"
            )
        return found


def key_of(name: str) -> str:
    """The key path of a value in the case file: velocity.0 for velocity_x."""
    key, _, axis = name.partition("_")
    return f"{key}.{'xyz'.index(axis)}" if axis in tuple("xyz") else name


def by_axis(name: str, vector: Sequence[Given] | str) -> dict[str, Given]:
    """The components of a vector by name: {name_x: …, name_y: …}."""
    return {f"{name}_{axis}": value for axis, value in zip("xyz", vector, strict=False)}


def in_cells(case: Case) -> tuple[int, ...]:
    """Numbers of the bodies whose boundary acts in cells, see Capabilities."""
    return tuple(k for k, b in enumerate(case.bodies) if b.boundary.capabilities.in_cells)


def reflecting(case: BoundedLattice) -> tuple[int, ...]:
    """Numbers of the bodies at rest with half-way walls that a kernel over cells can apply.

    A population that would come from a solid cell is then the cell's own outgoing one. Bodies with
    sheets are left out: links between two fluid cells may cross these.
    """
    return tuple(
        k
        for k, body in enumerate(case.bodies)
        if body.boundary.reflects and not (body.shape and body.shape.cuts)
    )


AnyCondition = TypeVar("AnyCondition", bound=Condition)


def one_face_each(boundaries: Iterable[AnyCondition]) -> tuple[AnyCondition, ...]:
    """Split the boundaries that need a normal into one boundary per face; sort all by precedence.

    A link that crosses several faces belongs to the last of their boundaries in this order, which
    does not depend on the order of the case file.
    """
    faces = (
        boundary.model_copy(update={"where": (face,)}) if face else boundary
        for boundary in boundaries
        for face in (boundary.where if boundary.capabilities.normal else (None,))
    )
    return tuple(sorted(faces, key=lambda boundary: boundary.precedence))

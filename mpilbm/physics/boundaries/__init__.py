"""Boundary conditions: what enters a cell, in terms of what left it."""

from math import inf
from typing import ClassVar, Literal

from pydantic import Field

from mpilbm.formulas.parser import FormulaError
from mpilbm.formulas.values import CellValue
from mpilbm.registry import Parameters
from mpilbm.units import counted
from mpilbm.verdicts.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY

Face = Literal["x-", "x+", "y-", "y+", "z-", "z+"]

VELOCITY = "velocity, one entry per dimension: numbers, or formulas of x, y, z, t; or a file"
DENSITY = "density: number, formula of x, y, z, t, or a file"


class Boundary(Parameters):
    """The populations that enter a cell along links which come from outside the fluid.

    `where` names faces of the box; a body's own boundary has none. A subclass says where its wall
    is (`wall_at`), on which lattices it is defined (None: all), and `incoming`. Further facts:

    oriented   it knows the inward normal, and so stands on faces of the box alone
    whole      it sets all populations of the cell, but for those along links of other boundaries
    reach      how many cells it looks inwards along the normal (`cell.inward`): 0, 1 or 2
    per_link   what it must know of each link (`cell.link`): "" (nothing), "distance", "second",
               "next" or "mirror", see link_values; `fallbacks` say what it does where that cannot
               be had
    behind     how many planes away what it reads along its links may lie (`cell.behind`): 0 or 2
    beside     it asks for the velocity of the next cell along each link (`cell.u_behind`); with
               behind = 2
    slips      nothing is dragged along its wall
    across     it stands on two periodic faces, and acts on what streams from one to the other
    plain      it speaks of populations that left alone, not of rho, u or a force
    turns_back what enters along a link is what left along it, and what is given
    fails_from the grid Reynolds number u/nu from which on it, as an inlet or outlet, made flows
               fail that are stable with `equilibrium`

    `wetting`: what the wall shows of the fluids that a coupling lets act on each other.
    """

    where: tuple[Face, ...] = Field(
        (), description="faces of the box; not for a body", examples=[["x-", "x+"]]
    )
    wetting: dict[str, float] | None = Field(
        None,
        description="coupled fluids: a density per fluid (shan_chen), or the contact angle of the "
        "first fluid in degrees (free_energy)",
        examples=[{"angle": 60}],
    )

    wall_at: ClassVar[Literal["half", "node"]] = "half"
    lattices: ClassVar[tuple[str, ...] | None] = None
    oriented: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    reach: ClassVar[int] = 0
    per_link: ClassVar[str] = ""
    fallbacks: ClassVar[tuple[str, ...]] = (
        "cells to which it looks inwards are no fluid; it takes the nearest before them",
    )
    behind: ClassVar[int] = 0
    beside: ClassVar[bool] = False
    slips: ClassVar[bool] = False
    across: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    turns_back: ClassVar[bool] = False
    fails_from: ClassVar[float] = inf

    @property
    def half_way_velocity(self) -> tuple[float, ...] | None:
        """u_wall, () at rest, where what left comes back with 2 w_i c_i . u_wall / cs2, else None.

        A wall half a cell out that moves with a velocity constant in space and time.
        """
        return None

    @property
    def moves_half_way(self) -> bool:
        """Whether it moves, and what stands beside it takes it for such a wall."""
        return False

    @property
    def returns(self) -> bool:
        """Whether what enters is what left along the same link, and nothing else."""
        return False

    def structure(self) -> dict:
        """What shapes the kernel text; entries of equal structure share a kernel and a list.

        All fields but those that `values` hands over and the places, of these the face where the
        normal is known, and the form of formulas of x, y and z; a subclass adds which of its values
        are given, if that changes the text.
        """
        found = {"face": "".join(self.where[:1])} if self.oriented else {}
        forms = {value.name: value.structure() for value in self.given() if value.coordinates}
        found |= {"formulas": forms} if forms else {}
        return self.model_dump(exclude={"where", "wetting", "velocity", "rho"}) | found

    def values(self) -> dict[str, float | str]:
        """Numbers and formulas that are given, by the names `incoming` uses."""
        return {}

    def given(self, D: int = 3) -> list[CellValue]:
        """The values, parted into what kernels compute and numbers; raises FormulaError."""
        return [CellValue(f"given_{name}", value, D) for name, value in self.values().items()]

    def normal(self, D: int) -> tuple[int, ...]:
        """The normal of its face, inwards."""
        axis, side = self.where[0]
        return tuple((1 if side == "-" else -1) * (axis == a) for a in "xyz"[:D])

    def state(self, lattice) -> tuple[str, ...]:
        """Names of the values that each entry keeps from step to step (and in checkpoints)."""
        return ()

    def begin(self, cell) -> dict:
        """{name: expression} of the state before the first step, from what left the cells then."""
        return {}

    def follow(self, cell, enters: dict) -> dict:
        """{name: expression} of the state that the next step finds; `enters`: see `incoming`."""
        return {}

    def incoming(self, cell) -> dict:
        """{i: expression} of what enters along each c_i that may be listed.

        These are all i > 0; with a normal those with c_i . normal > 0; where `whole`, all i.

        `cell` offers, each computed when it is named,

        lattice, cs                   the speed of sound
        values                        what is given, by name, at the cell's centre
        at_wall(i, expression, q)     the expression with these at the wall, x - q c_i, or without
                                      q half a link out
        link(i)                       the number of the link along c_i, where declared
        behind(i, k, j)               what left x + k c_i along c_j: c_i itself for k = 1, c_opp(i)
                                      for k = 2; where declared
        u_behind(i)                   u of what left x + c_i, where declared; zero unless c_i is its
                                      own
        owns(i, yes, no)              one of two values: whether the link along c_i is missing and
                                      this entry's
        left[j]                       the population that left the cell along c_j
        rho, density, u               of what left; density as it is stored
        arrives[j]                    the one that streams in, or comes from the mirror of a face
                                      that slips; along another missing link, what left against
                                      it, changed by the wall there if it `moves_half_way`
        streams(offset, j)            the one along c_j that streams to x + offset, also where that
                                      lies beyond a face; it must come from a cell next to x
        mirrored(i, offset, j)        the same if that is the "mirror" of the link along c_i, which
                                      knows it where layouts store nothing beyond faces
        normal, inward(k), state      where declared; inward(k) is another cell: left, arrives, …
        feq(density, rho, u)          of the collision
        stored(rho), rest(density)    the density that goes with a rho, and the inverse
        macroscopic(f)                density, rho and u of Q populations that stream in
        momentum(rho, u)              their sum_i c_i f_i: rho u less half of the force
        velocity(momentum, rho)       the inverse
        force                         per volume
        below(a, b, yes, no)          one of two values: whether a < b
        let(name, expression)         a name for a value
        """
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """Refuse lattices without this boundary, and values of another dimension."""
        found = []
        for name, value in self.values().items():
            try:
                CellValue(name, value, case.dimensions)
            except FormulaError as error:
                found.append(f"{key_of(name)}: {error}")
        if self.oriented and not self.where:
            found.append(f"{self.name} needs a face of the box, bodies have none; allowed here: "
                         f"boundaries without a normal, like bounce_back")  # fmt: skip
        if self.lattices and case.lattice.name not in self.lattices:
            found.append(f"{self.name} is not defined on {case.lattice.name}; "
                         f"allowed: {', '.join(self.lattices)}")  # fmt: skip
        if self.wetting is not None and case.coupling is None:
            found.append("wetting: is of fluids that are coupled; add [coupling] or remove it")
        rho = getattr(self, "rho", None)
        if isinstance(rho, float) and not LEAST_DENSITY <= rho <= LARGEST_DENSITY:
            found.append(f"rho: found {rho:g}; allowed: {DENSITIES}; 1 is usual")
        velocity = getattr(self, "velocity", None)
        if velocity is not None and len(velocity) != case.lattice.D:
            given = counted(len(velocity), "component")
            found.append(f"velocity: found {given}; allowed: {case.lattice.D}")
        return found


def key_of(name: str) -> str:
    """The key of a value: velocity_x is velocity.0."""
    key, _, axis = name.partition("_")
    return f"{key}.{'xyz'.index(axis)}" if axis in tuple("xyz") else name


def by_axis(name: str, vector: tuple) -> dict[str, float | str]:
    """{name_x: …, name_y: …} of the components of a vector."""
    return {f"{name}_{axis}": value for axis, value in zip("xyz", vector, strict=False)}


def one_face_each(boundaries) -> tuple:
    """The [[boundary]]s of a case, those that know their normal once for each face they name.

    Those that slip come first: where they meet others a link is the others'.
    """
    faces = (
        boundary.model_copy(update={"where": (face,)}) if face else boundary
        for boundary in boundaries
        for face in (boundary.where if boundary.oriented else (None,))
    )
    return tuple(sorted(faces, key=lambda boundary: not boundary.slips))

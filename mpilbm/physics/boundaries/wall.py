"""Base classes of no-slip walls: at rest, moving or rotating, half-way or at a shape's surface."""

from dataclasses import replace
from math import hypot
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from mpilbm.core import quantity
from mpilbm.core.formulas.values import Given, GivenVector
from mpilbm.core.quantity import ANGULAR_VELOCITY, LENGTH
from mpilbm.core.registry import Parameters
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression
from mpilbm.physics.boundaries import VELOCITY, Driven, by_axis
from mpilbm.physics.boundary_capabilities import Capabilities

AXIS = (0.0, 0.0, 1.0)


class Rotation(Parameters):
    """A rigid rotation: u = omega x (x - centre), omega = rate axis / |axis|.

    In 2D the axis is z: u = rate (-(y - c_y), x - c_x), anticlockwise for a positive rate.
    """

    centre: Annotated[tuple[float, ...], LENGTH] = Field(
        min_length=2, max_length=3, description="a point on the axis", examples=[[32, 32]]
    )
    rate: Annotated[float, ANGULAR_VELOCITY] = Field(
        description="angular velocity; positive: anticlockwise if the axis points to the viewer",
        examples=[0.001],
    )
    axis: tuple[float, float, float] = Field(
        AXIS, description="direction of the axis, for 3D", examples=[[0, 0, 1]]
    )

    @field_validator("axis")
    @classmethod
    def _direction(cls, axis: tuple[float, float, float]) -> tuple[float, float, float]:
        if not hypot(*axis) > 0:
            raise ValueError("has length 0; give a direction such as [0, 0, 1]")
        return axis

    def problem(self, dimensions: int) -> str:
        """A sentence if the number of entries or the axis does not fit a case; else empty."""
        if len(self.centre) != dimensions:
            found = len(self.centre)
            return f"centre: found {found} entries; allowed: {dimensions} in {dimensions}D"
        if dimensions == 2 and self.axis[:2] != (0, 0):
            return f"axis: found {list(self.axis)}; allowed in 2D: [0, 0, 1] or [0, 0, -1]"
        return ""

    def velocity(self) -> tuple[float | str, ...]:
        """The components of u as formulas of x, y (and z)."""
        length = hypot(*self.axis)
        wx, wy, wz = (self.rate * part / length for part in self.axis)
        x, y, *rest = [f"({a} - {c!r})" for a, c in zip("xyz", self.centre, strict=False)]
        if not rest:
            return _sum((-wz, y)), _sum((wz, x))
        (z,) = rest
        return _sum((wy, z), (-wz, y)), _sum((wz, x), (-wx, z)), _sum((wx, y), (-wy, x))


def _sum(*terms: tuple[float, str]) -> float | str:
    """The formula of a sum of products; a number if all factors are 0."""
    return " + ".join(f"({factor!r})*{place}" for factor, place in terms if factor) or 0.0


class Wall(Driven):
    """A no-slip wall, at rest, moving with `velocity`, or in `rotation`; rho_0 = 1."""

    velocity: Annotated[GivenVector | None, quantity.VELOCITY] = Field(
        None, description=f"{VELOCITY}; none: at rest", examples=[[0.1, 0]]
    )
    rotation: Rotation | None = Field(
        None,
        description="rigid rotation, in place of velocity",
        examples=[{"centre": [32, 32], "rate": 0.001}],
    )

    @model_validator(mode="after")
    def _rotated(self) -> Self:
        """The velocity of the rotation."""
        if self.rotation is not None:
            if self.velocity is not None:
                raise ValueError("has both velocity and rotation; give one of them")
            object.__setattr__(self, "velocity", self.rotation.velocity())
        return self

    def problems(self, case: Case) -> list[str]:
        """Errors of all boundaries, and a rotation with a wrong number of entries."""
        wrong = self.rotation.problem(case.dimensions) if self.rotation else ""
        return [f"rotation.{wrong}"] if wrong else super().problems(case)

    def values(self) -> dict[str, Given]:
        """The components of the wall's velocity; empty at rest."""
        return by_axis("velocity", self.present_velocity)

    @property
    def wall_velocity(self) -> tuple[Given, ...] | str | None:
        """The velocity with its ramp; None at rest."""
        return None if self.velocity is None else self.present_velocity

    def motion(self, cell: Cell, local: bool = False) -> list[Expression]:
        """Q expressions feq_i(rho, u_wall) - feq_opp(i)(rho, u_wall); zeros at rest.

        rho is rho_0 = 1 or, with `local`, the density of the outgoing populations of the cell.
        """
        lattice, u = cell.lattice, list(cell.values.values())
        if not u:
            return [0] * lattice.Q
        density, rho = (cell.density, cell.rho) if local else (cell.stored(1), 1)
        feq = cell.feq(density, rho, u)
        return [feq_i - feq[j] for feq_i, j in zip(feq, lattice.opp, strict=True)]


class SurfaceWall(Wall):
    """A no-slip wall at the distance q_i along each link, 0 < q_i <= 1; j = opp(i).

    A subclass defines `per_link` and `at_surface`, the incoming population g_i of a link. The
    motion of the wall has the density rho of the outgoing populations of the cell:

    d_i = feq_i(rho, u_wall) - feq_j(rho, u_wall), u_wall at x - q_i c_i

    The sum of g_i - f_out_j over all links of a body is not exactly 0. With `conserve_mass` each
    cell corrects its population at rest by the difference to half-way walls, which conserve mass:

    f_0 = f_out_0 + sum_i (f_out_j + d_i(rho_0, x - c_i / 2) - g_i),   rho_0 = 1

    where i are the links of the cell that cross the wall. In a cell whose population at rest
    another boundary sets, the sum is divided among these links, in proportion to w_i.
    """

    conserve_mass: bool = Field(
        False,
        description="conserve the mass exactly, with two to four times the error; for closed flows",
    )

    @property
    def capabilities(self) -> Capabilities:
        """`declares`, and whether the population at rest is set and the mass conserved."""
        return replace(self.declares, rest=self.conserve_mass, conserves=self.conserve_mass)

    def at_surface(self, cell: Cell, i: int, q: Expression, change: Expression) -> Expression:
        """The incoming population g_i of a link; `change` is d_i."""
        raise NotImplementedError

    def distance(self, cell: Cell, i: int) -> Expression:
        """The distance q_i."""
        return cell.link(i)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The g_i of all links; with `conserve_mass` corrected, and the population at rest."""
        found, motion = {}, self.motion(cell, local=True)
        for i in range(1, cell.lattice.Q):
            q = self.distance(cell, i)
            found[i] = self.at_surface(cell, i, q, cell.at_wall(i, motion[i], q))
        return self._conserving(cell, found) if self.conserve_mass else found

    def _conserving(self, cell: Cell, found: dict[int, Expression]) -> dict[int, Expression]:
        """The populations g_i, corrected by the mass that half-way walls would not add."""
        lattice, half_way, excess, weight = cell.lattice, self.motion(cell), 0, 0
        for i, g in found.items():
            found[i] = g = cell.let(f"surface_{i}", g)
            back = cell.left[lattice.opp[i]] + cell.at_wall(i, half_way[i])
            excess += cell.supplies(i, g - back, 0)
            weight += cell.supplies(i, lattice.w[i], 0)
        excess = cell.let("excess", excess)
        share = cell.let("share", cell.supplies(0, 0, excess / weight))
        corrected = {i: g - lattice.w[i] * share for i, g in found.items()}
        return {0: cell.left[0] - excess} | corrected

"""The friction of a wall law as a force on the fluid cells above curved walls."""

from typing import Annotated, ClassVar

from pydantic import Field

from mpilbm.core.formulas.trees import largest, sqrt
from mpilbm.core.formulas.values import Given
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import Choice
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.boundaries.wall import Wall
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot
from mpilbm.physics.wall_laws import WallLaw

LEAST = 1e-6  # of Re_y, below which every law is laminar


class ModelledWall(Wall):
    """A wall whose stress follows from a wall law.

        T = -rho u_tau^2 u_r / |u_r|    per area,  u_tau: `law` at |u_r|, `roughness` and the height

    u_r is the velocity of the fluid along the wall, relative to it. rho = rho_0 = 1 if the momentum
    is rho_0 u (`incompressible`).
    """

    law: Annotated[WallLaw, Choice("wall_laws", name_alone=True)] = Field(
        description="wall law", examples=["spalding"]
    )
    roughness: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="height of sand grains; none: a smooth wall", examples=[0.05]
    )

    numbers = ("roughness",)

    def values(self) -> dict[str, Given]:
        """The components of the wall's velocity, and the roughness, if they are given."""
        return super().values() | ({} if self.roughness is None else {"roughness": self.roughness})

    def stress(
        self, cell: Cell, along: Vector, y: Expression, inertia: Expression
    ) -> list[Expression]:
        """T, at a velocity along the wall that is known at the height y."""
        along, nu = [cell.let(f"along_{a}", u) for a, u in enumerate(along)], cell.viscosity
        speed = cell.let("speed", sqrt(dot(along, along)))
        Re = cell.let("Re", largest(speed * y / nu, LEAST))
        grains = 0 if self.roughness is None else cell.values["roughness"] / y
        u_plus = cell.let("u_plus", self.law.u_plus(Re, grains, cell.let))
        friction = cell.let("friction", inertia * nu / y * Re / u_plus**2)
        return [-friction * u for u in along]


class WallFriction(ModelledWall):
    """The populations that arrive in a cell, with the friction of the wall below it.

        f_i + feq_i(rho, u + A T / rho) - feq_i(rho, u)

    rho and u are those of the arriving populations f_i, so that moments beyond equilibrium stay as
    they are (exact difference). T is that of the law at the velocity of the cell itself and at its
    distance from the wall; A is the area of wall whose friction acts in the cell, see
    solids/wall_layer.py. `wall_model` has it at curved walls.
    """

    name: ClassVar[str] = "wall_friction"
    declares = Capabilities(whole_cell=True, layer=True)

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """All Q populations."""
        lattice, layer, f = cell.lattice, cell.layer, cell.streamed
        axes, n = range(lattice.D), layer.normal
        density, rho, u = cell.macroscopic(f)
        density, rho = cell.let("density", density), cell.let("rho", rho)
        u = [cell.let(f"u_{a}", each) for a, each in enumerate(u)]
        wall = [cell.values.get(f"velocity_{axis}", 0) for axis in "xyz"]
        relative = [u[a] - cell.let(f"wall_{a}", cell.below_foot(wall[a])) for a in axes]
        away = cell.let("away", dot(relative, n))
        along = [each - away * n_a for each, n_a in zip(relative, n, strict=True)]
        inertia = cell.let("inertia", cell.inertia_of(rho))
        force = self.stress(cell, along, layer.height, inertia)
        slower = [cell.let(f"slower_{a}", u[a] + layer.area * force[a] / inertia) for a in axes]
        before, after = (cell.feq(density, rho, each) for each in (u, slower))
        return {i: f[i] + after[i] - before[i] for i in range(lattice.Q)}

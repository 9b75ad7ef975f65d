"""A cell, as boundary conditions and couplings see it.

codegen/boundary_cell.py and codegen/coupled_cell.py have the implementations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mpilbm.model.expressions import Expression, Let, Populations, Rates, Vector

if TYPE_CHECKING:
    from mpilbm.physics.lattices import Lattice


class Flow(Protocol):
    """The values of a cell before the step; each is read or computed when it is used."""

    @property
    def left(self) -> Populations:
        """left[j] is the outgoing population of the cell along c_j."""

    @property
    def arrives(self) -> Populations:
        """arrives[j] is the arriving population: the one that streams in.

        At a free-slip face it is the one of the mirror image; along any other missing link the
        outgoing population of the opposite direction, plus the motion of a moving wall there.
        """

    @property
    def density(self) -> Expression:
        """The stored density of the outgoing populations."""

    @property
    def rho(self) -> Expression:
        """The density of the outgoing populations."""

    @property
    def inertia(self) -> Expression:
        """Their momentum per volume divided by u: rho; rho_0 = 1 if the equilibrium says so."""

    @property
    def u(self) -> Vector:
        """The velocity of the outgoing populations."""


@dataclass(frozen=True)
class SurfaceSample:
    """The wall of a body next to a cell, and the flow at a distance from it.

    normal   the normal of the wall, out of the body: a unit vector; 0 where no wall is known
    height   the distance of the centre of the sampled cell from the wall
    inclined  1 if the wall is at an angle to the faces of the cells, else 0
    curved    1 if an inclined wall is curved, or ends next to the cell, else 0
    u        the velocity of the outgoing populations of the sampled cell
    inertia  their momentum per volume divided by u, see Flow
    """

    normal: Vector
    height: Expression
    inclined: Expression
    curved: Expression
    u: Vector
    inertia: Expression


@dataclass(frozen=True)
class LayerSample:
    """The wall of a body below a fluid cell that is not next to it.

    normal  the normal of the wall, out of the body: a unit vector
    height  the distance of the cell from the wall
    area    the area of the wall that acts on the cell
    """

    normal: Vector
    height: Expression
    area: Expression


class Cell(Flow, Protocol):
    """The cell of an entry of a boundary list."""

    @property
    def lattice(self) -> "Lattice":
        """The lattice."""

    @property
    def cs(self) -> Expression:
        """The speed of sound."""

    @property
    def viscosity(self) -> Expression:
        """The kinematic viscosity of the fluid, as given in the case."""

    @property
    def values(self) -> Mapping[str, Expression]:
        """The given values by name, at the cell's centre."""

    @property
    def normal(self) -> tuple[int, ...]:
        """The inward normal, D integers; if declared."""

    @property
    def state(self) -> Mapping[str, Expression]:
        """The stored values by name, see `Condition.state`."""

    @property
    def force(self) -> Vector:
        """The force F per volume."""

    @property
    def meeting(self) -> Expression:
        """1 if several boundaries set values in the cell, else 0."""

    def at_wall(self, i: int, expression: Expression, q: Expression = ...) -> Expression:
        """The expression with the given values taken at the wall, x - q c_i.

        Without q, half a link outside the cell.
        """

    def link(self, i: int) -> Expression:
        """The value of the link along c_i (`per_link`)."""

    def behind(self, i: int, k: int, j: int) -> Expression:
        """The outgoing population along c_j of the cell x + k c_i.

        (k, j) is (1, i) or (2, opp(i)); needs Behind.POPULATIONS.
        """

    def u_behind(self, i: int) -> Vector:
        """The velocity of the outgoing populations of x + c_i.

        Zero unless the entry owns the link along c_i; needs Behind.VELOCITY.
        """

    @property
    def surface(self) -> SurfaceSample:
        """The wall of the body, and the cell sampled along its normal; if declared."""

    @property
    def layer(self) -> LayerSample:
        """The wall below the cell; if declared."""

    @property
    def streamed(self) -> Populations:
        """streamed[j] is the population that streams in along c_j; undefined at missing links."""

    def below_foot(self, expression: Expression) -> Expression:
        """The expression with the given values taken at the wall below; needs `layer`."""

    def inertia_of(self, rho: Expression) -> Expression:
        """The momentum per volume divided by u at a density rho, see Flow.inertia."""

    def at_surface(self, expression: Expression) -> Expression:
        """The expression with the given values taken at the wall; needs `surface`."""

    def owns(self, i: int, yes: Expression, no: Expression) -> Expression:
        """`yes` if the link along c_i is missing and the entry owns it, otherwise `no`."""

    def supplies(self, i: int, yes: Expression, no: Expression) -> Expression:
        """`yes` if the entry supplies the population along c_i, otherwise `no`.

        i = 0: the population at rest.
        """

    def streams(self, offset: Sequence[int], j: int) -> Expression:
        """The population along c_j that streams to x + offset, also beyond a face.

        It must come from a cell next to x.
        """

    def mirrored(self, i: int, offset: Sequence[int], j: int) -> Expression:
        """As `streams`, where this is the mirror image for the link along c_i.

        Also in layouts without cells beyond faces.
        """

    def inward(self, k: int) -> Flow:
        """The k-th cell inwards; if declared."""

    def feq(self, density: Expression, rho: Expression, u: Vector) -> Populations:
        """The equilibrium of the collision."""

    def rebuilt(self, u: Vector, A: Sequence[Expression]) -> Populations:
        """Populations of the density of the cell, with the velocity u, from second moments A.

        A: the Hermite moments less rho u u, in the order of `pairs`. The moments above the second
        order follow by the recursion of `recursive_regularized`, on lattices and for collisions
        that have them.
        """

    def stored(self, rho: Expression) -> Expression:
        """The stored density of a density rho."""

    def rest(self, density: Expression) -> Expression:
        """The density of a stored density."""

    def macroscopic(self, f: Populations) -> tuple[Expression, Expression, Vector]:
        """Stored density, density and velocity of Q arriving populations."""

    def momentum(self, rho: Expression, u: Vector) -> Vector:
        """sum_i c_i f_i = rho u - F/2 of arriving populations."""

    def velocity(self, momentum: Vector, rho: Expression) -> Vector:
        """u, the inverse of `momentum`."""

    def below(self, a: Expression, b: Expression, yes: Expression, no: Expression) -> Expression:
        """`yes` if a < b, otherwise `no`."""

    def let(self, name: str, expression: Expression) -> Expression:
        """Define a named value in the kernel and return its symbol."""


@dataclass(frozen=True)
class PartialCell:
    """A cell in a step, of which a body may fill a share; the populations are those that arrive.

    share     the share of the cell that is solid, 0 to 1
    omega     the rate 1 / tau at which the shear stress relaxes in the cell
    u         the velocity of the collision
    u_body    the velocity of the body in the cell
    beyond    f - feq; of collisions that keep second moments alone, the part with these
    collided  the populations after the collision of the fluid, without the body
    feq       the equilibrium of the collision at the density of the cell, from u
    momentum  the momentum of the cell at a velocity u: rho u, or rho_0 u
    let       defines a named value in the kernel and returns its symbol
    """

    lattice: "Lattice"
    share: Expression
    omega: Expression
    u: Vector
    u_body: Vector
    beyond: Populations
    collided: Populations
    feq: Callable[[Vector], Populations]
    momentum: Callable[[Vector], Vector]
    let: Let


class CoupledCell(Protocol):
    """A cell with the populations of several fluids, or phases, as couplings see it."""

    @property
    def lattice(self) -> "Lattice":
        """The lattice."""

    @property
    def cs2(self) -> Expression:
        """The square of the speed of sound."""

    @property
    def axes(self) -> str:
        """The letters of the axes, "xy" or "xyz"."""

    @property
    def count(self) -> int:
        """The number of fluids."""

    @property
    def half(self) -> int:
        """1 if the velocity of the collision includes half of the force, else 0."""

    @property
    def let(self) -> Let:
        """Defines a named value in the kernel and returns its symbol."""

    def density(self, k: int, /) -> Expression:
        """The stored density of fluid k."""

    def rho(self, k: int, /) -> Expression:
        """The density of fluid k."""

    def momentum(self, k: int, /) -> Vector:
        """sum_i c_i f_i of fluid k."""

    def external_force(self, k: int) -> Vector:
        """The force per volume on fluid k that the case gives."""

    def number(self, name: str) -> Expression:
        """The symbol of one of the `numbers` of the coupling."""

    def here(self, name: str) -> Expression:
        """A field in the cell."""

    def slope(self, name: str, /) -> Vector:
        """The gradient of a field, sum_i w_i c_i field(x + c_i) / cs2."""

    def laplacian(self, name: str, /) -> Expression:
        """2 sum_i w_i (field(x + c_i) - field(x)) / cs2 of a field."""

    def collided(self, k: int, F: Vector, u: Vector | None = None) -> list[Expression]:
        """f* of fluid k with the force F and the velocity u; without u, that of fluid k."""

    def relaxed(
        self,
        k: int,
        feq: Populations,
        rates: Rates,
        u: Vector | None = None,
        F: Vector | None = None,
    ) -> list[Expression]:
        """f* of fluid k that relaxes towards feq; with a force F at the velocity u, if given.

        `rates` replace rates of the fluid of the same names.
        """

    def initial(self, k: int, F: Vector) -> list[Expression]:
        """f* in equilibrium at the density and momentum of fluid k, with the force F."""

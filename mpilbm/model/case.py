"""A case, its fluids, scalars and bodies, as the folders below `case` use them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpilbm.model.box import Domain, Needs, Precision, Run

if TYPE_CHECKING:
    from mpilbm.core.formulas.trees import Tree
    from mpilbm.core.formulas.values import CellValue, FieldValue
    from mpilbm.core.units import Units
    from mpilbm.layouts import Layout
    from mpilbm.layouts.formats import Formats
    from mpilbm.physics.boundaries import Boundary, Condition
    from mpilbm.physics.collisions import Collision
    from mpilbm.physics.couplings import Coupling
    from mpilbm.physics.forcing import Forcing
    from mpilbm.physics.lattices import Lattice
    from mpilbm.physics.motions import Motion
    from mpilbm.physics.sampled import Sampled
    from mpilbm.physics.scalars.collisions import ScalarCollision
    from mpilbm.physics.sloped import Sloped
    from mpilbm.solids.shapes import Shape


class Initial(Protocol):
    """The values of a fluid or scalar at t = 0."""

    @property
    def where(self) -> str:
        """Their key path, for messages."""

    @property
    def iterate(self) -> int:
        """How many steps adapt the populations to a velocity that is kept."""

    @property
    def non_equilibrium(self) -> bool:
        """Whether the populations contain the stresses of the initial velocity."""

    @property
    def uniform(self) -> bool:
        """Whether all cells have the same values."""

    @property
    def trees(self) -> "Mapping[str, Tree]":
        """The formulas, or numbers, of the value, u_x, u_y …; without those of files and fields."""

    @property
    def value(self) -> "float | str | FieldValue":
        """The density of a fluid, or the value of a scalar: number, formula, array or function."""

    @property
    def file(self) -> Path | None:
        """The file with the values, in place of numbers and formulas."""


class Field(Protocol):
    """What has populations on the cells of a case: a fluid or a scalar."""

    @property
    def label(self) -> str:
        """The name; empty for the only fluid."""

    @property
    def collision(self) -> "Collision | ScalarCollision":
        """The collision."""

    @property
    def initial(self) -> Initial:
        """The values at t = 0."""

    def arguments(self, lattice: "Lattice") -> dict[str, float]:
        """The numeric arguments of its kernels by name: the rates of its collision."""


class Fluid(Field, Protocol):
    """A fluid; the viscosity is in lattice units."""

    @property
    def viscosity(self) -> float:
        """The kinematic viscosity."""

    @property
    def formula(self) -> str:
        """The formula of a viscosity that depends on scalars; else empty."""

    @property
    def collision(self) -> "Collision":
        """The collision."""

    @property
    def force(self) -> "Forcing | None":
        """The force, None without one."""


class Scalar(Field, Protocol):
    """A scalar; the diffusivity is in lattice units."""

    @property
    def diffusivity(self) -> float:
        """The diffusivity."""

    @property
    def lattice(self) -> "Lattice":
        """The lattice of its populations."""

    @property
    def collision(self) -> "ScalarCollision":
        """The collision."""

    @property
    def boundaries(self) -> "Sequence[Condition]":
        """The conditions on the faces."""

    @property
    def bodies(self) -> "Sequence[Condition]":
        """The condition on each body."""

    def source_value(self, number: int, labels: tuple[str, ...]) -> "CellValue | None":
        """The source for kernels; None if it is 0."""


class Surface(Protocol):
    """The surfaces of a shape and of its images in the box; all arrays along axes are (D, n)."""

    def inside(self, *points: NDArray[Any]) -> Any:
        """Bool array: whether points x, y[, z] are solid."""

    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The corners of a box that contains the shape and its images."""

    def distance(self, points: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float64]:
        """Return q, (n,), 0 <= q <= 1, such that points + q * step lies on a surface."""

    def first(self, points: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float64]:
        """Return q, (n,), of the first sheet between points and points + step; nan without one."""


class Solid(Protocol):
    """A solid in the box: a shape, or the cells of a file."""

    @property
    def label(self) -> str:
        """The name."""

    @property
    def shape(self) -> "Shape | None":
        """The shape; None for a file of cells."""

    @property
    def mask(self) -> str | None:
        """The file of cells, or None."""

    @property
    def boundary(self) -> "Condition":
        """The condition on the surface."""

    @property
    def motion(self) -> "Motion | None":
        """How it moves; None at rest."""


class Body(Solid, Protocol):
    """A solid in the flow."""

    @property
    def boundary(self) -> "Boundary":
        """The condition of the flow on the surface."""


class Buoyancy(Protocol):
    """Boussinesq approximation: force = -rho_0 gravity sum_k beta_k (phi_k - reference_k)."""

    @property
    def gravity(self) -> tuple[float, ...]:
        """The acceleration of gravity, D numbers."""

    @property
    def expansions(self) -> Mapping[str, Any]:
        """`beta` and `reference` of the scalars, by label."""


class BoundedLattice(Protocol):
    """A lattice in the box, and the conditions at the boundaries of its populations.

    The fluids share one, which is the case itself. Each scalar has one of its own: the same box
    and bodies, with another lattice and other conditions.
    """

    @property
    def lattice(self) -> "Lattice":
        """The lattice."""

    @property
    def domain(self) -> Domain:
        """The box."""

    @property
    def dimensions(self) -> int:
        """2 or 3."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Stored cells (planes, rows, nx)."""

    @property
    def precision(self) -> Precision:
        """The number types."""

    @property
    def layout(self) -> "Layout":
        """The arrangement of the state in memory."""

    @property
    def formats(self) -> "Formats":
        """The number formats of the values that a cell stores."""

    @property
    def boundaries(self) -> "Sequence[Condition]":
        """The conditions on the faces of the box."""

    @property
    def bodies(self) -> Sequence[Solid]:
        """The bodies, with the conditions on their surfaces."""

    @property
    def frames(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        """The frame of each body, see case/case.py."""

    @property
    def path(self) -> Path:
        """The file of the case, for messages."""

    @property
    def directory(self) -> Path:
        """The folder to which paths are relative."""

    @property
    def given(self) -> Mapping[str, Any]:
        """Arrays and functions of a Python program, by their references in the tables."""


class Case(BoundedLattice, Protocol):
    """All that physics, layouts, links, kernels and geometry use of a case."""

    @property
    def ghost(self) -> int:
        """Number of ghost planes at each end of a slab."""

    @property
    def fluids(self) -> Sequence[Fluid]:
        """The fluids; several with a coupling."""

    @property
    def coupling(self) -> "Coupling | None":
        """The coupling of several fluids or phases."""

    @property
    def single_fluid(self) -> bool:
        """Whether there is one fluid without a coupling.

        Then the pressure is cs2 rho, and only given forces act on the fluid.
        """

    @property
    def scalars(self) -> Sequence[Scalar]:
        """The scalars that the fluid carries."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the scalars."""

    @property
    def buoyancy(self) -> Buoyancy | None:
        """How scalars act on the fluid."""

    @property
    def boundaries(self) -> "Sequence[Boundary]":
        """The boundaries of the faces of the box."""

    @property
    def bodies(self) -> Sequence[Body]:
        """The bodies."""

    @property
    def conductors(self) -> tuple[int, ...]:
        """Numbers of the bodies that conduct a scalar."""

    @property
    def run(self) -> Run:
        """The table [run]."""

    @property
    def needs(self) -> Needs:
        """What the outputs need."""

    @property
    def units(self) -> "Units | None":
        """Metres, seconds … of a lattice unit."""

    @property
    def own_fields(self) -> tuple[str, ...]:
        """The fields besides those of any flow: those of a coupling, or scalars and `pressure`."""

    @property
    def sloped(self) -> "tuple[Sloped, ...]":
        """The fields whose gradients are summed over the box, stored after the velocity."""

    @property
    def in_samples(self) -> "Sampled":
        """What a sample of the output `statistics` contains."""

    @property
    def kernel_values(self) -> "list[CellValue]":
        """The values that kernels evaluate: forces, sources of scalars, viscosity."""

    @property
    def viscosity_value(self) -> "CellValue | None":
        """The formula of the viscosity for kernels; None for a number."""

    @property
    def common_viscosity(self) -> float | None:
        """The viscosity that all cells have, in lattice units; None if they differ."""

    def of_scalar(self, number: int) -> BoundedLattice:
        """The lattice of a scalar, with the conditions on it."""

    def force_on(self, number: int) -> "list[CellValue]":
        """The components of the force on a fluid."""

    def key(self, fluid: Any, name: str) -> str:
        """Key path of a table of a fluid, for messages."""

    def fluid_key(self, fluid: Any, name: str) -> str:
        """Key path of a number of a fluid, for messages."""

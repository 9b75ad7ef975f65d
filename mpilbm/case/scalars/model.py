"""A scalar of a checked case."""

from pydantic import SkipValidation

from mpilbm.case.initial_fields import InitialFields
from mpilbm.core.formulas.values import CellValue
from mpilbm.core.registry import Parameters
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.scalars.collisions import ScalarCollision


class Scalar(Parameters):
    """One scalar: `diffusivity` in lattice units, lattice, collision, boundaries.

    `bodies` holds the condition on each body, by its index. `key` is the path of its table in the
    case. `heat_capacity` is in J/(m^3 K). `ratio` is the key, prandtl or schmidt, by which the
    viscosity gives the diffusivity; empty: neither.
    """

    label: str
    key: str
    diffusivity: float
    ratio: str = ""
    lattice: SkipValidation[Lattice]
    collision: SkipValidation[ScalarCollision]
    initial: InitialFields
    source: float | str = 0.0
    heat_capacity: float | None = None
    boundaries: tuple[SkipValidation[ScalarBoundary], ...] = ()
    bodies: tuple[SkipValidation[ScalarBoundary], ...] = ()

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The numeric arguments of its kernels by name: the rates of its collision."""
        return self.collision.rates(self.diffusivity, lattice)

    def source_value(self, number: int, labels: tuple[str, ...]) -> CellValue | None:
        """The source for kernels; None if it is 0. Raises FormulaError."""
        if self.source == 0:
            return None
        return CellValue(f"source_{number}", self.source, self.lattice.D, labels)

"""Body forces: the source term F_i of a collision.

Imports only `physics/equilibria`, `formulas`, `units` and lower layers. To add a forcing scheme,
write one file with a class derived from `Forcing` and `@register("forcing", name)` that defines
`source`.
"""

from typing import ClassVar

from pydantic import Field, field_validator

from mpilbm.formulas.parser import FormulaError
from mpilbm.formulas.values import CellValue, Value
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import Parameters
from mpilbm.units import counted


class Forcing(Parameters):
    """A force per volume; `value` in lattice units, D components, numbers or formulas.

    The step from t to t + 1 collides with F at t + 1. Outputs after t steps subtract half of F at t
    from the momentum; the momentum of a box grows by the mean of F at t and at t + 1.

    With a force the velocity is u = (sum_i c_i f_i + F/2) / rho of the incoming populations and
    (sum_i c_i f*_i - F/2) / rho of the post-collision populations. A force `inside` the collision
    collides at u and is relaxed together with f (see Collision). With a force outside, the cell
    collides at u - F/(2 rho) = (sum_i c_i f_i) / rho as without a force, and F_i is added to f*_i.
    """

    value: tuple[Value, ...] = Field(
        description="force per volume, one entry per dimension: numbers, or formulas of x, y, z, t",
        examples=[[1e-6, 0, 0]],
    )

    inside: ClassVar[bool] = True
    second_order: ClassVar[bool] = False  # Hermite moments of F_i above the second order are zero

    @field_validator("value")
    @classmethod
    def _two_or_three(cls, value):
        if len(value) not in (2, 3):
            raise ValueError(
                f"found {counted(len(value), 'component')}; allowed: one per dimension"
            )
        return value

    def structure(self) -> dict:
        """What changes the kernel text: all fields; of the value only the form of its formulas."""
        forms = [component.structure() for component in self.components()]
        return self.model_dump(exclude={"value"}) | {"formulas": forms}

    def components(self, end: str = "") -> list[CellValue]:
        """The D components, split into formulas for the kernel and numbers; raises FormulaError.

        `end` is a suffix of their names.
        """
        names = (f"force_{axis}{end}" for axis in "xyz")
        return [
            CellValue(name, value, len(self.value))
            for name, value in zip(names, self.value, strict=False)
        ]

    def source(self, lattice: Lattice, collision, density, rho, u, F) -> list:
        """Q expressions F_i from the force F and the velocity u of the collision (D each).

        `collision` provides feq(lattice, density, rho, u) and velocity(momentum, rho).
        """
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """Errors: a wrong number of components, or formulas that cannot be evaluated.

        Formulas of the coordinates are evaluated by velocity_bounds.require_forces.
        """
        if len(self.value) != case.lattice.D:
            return [f"value: found {len(self.value)} components; allowed: {case.lattice.D}"]
        found = []
        for k, value in enumerate(self.value):
            try:
                given = CellValue("force", value, case.lattice.D)
                alike = not given.coordinates
                where = case.domain.size, case.precision.compute, 0, 1
                problem = given.problem(*where) if alike else ""
            except FormulaError as error:
                problem = str(error)
            found += [f"value.{k}: {problem}"] if problem else []
        return found

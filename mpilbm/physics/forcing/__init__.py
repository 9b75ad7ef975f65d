"""Body forces: the source term F_i of a collision."""

from typing import ClassVar

from pydantic import Field, field_validator

from mpilbm.formulas.parser import FormulaError
from mpilbm.formulas.values import CellValue, Value
from mpilbm.registry import Parameters
from mpilbm.units import counted


class Forcing(Parameters):
    """A force per volume; `value` in lattice units, D components, numbers or formulas.

    The step from t to t + 1 collides with F at t + 1, and outputs after t steps take half of F at
    t off the momentum: that of a box grows by the mean of F at t and at t + 1.

    With a force the velocity is u = (sum_i c_i f_i + F/2) / rho from what streams in, and
    (sum_i c_i f*_i - F/2) / rho from what leaves the cell. A force `inside` the collision collides
    at u and is relaxed with f (see Collision); one outside lets the cell collide at
    u - F/(2 rho) = (sum_i c_i f_i) / rho as if there were none, and adds F_i to what it leaves.
    """

    value: tuple[Value, ...] = Field(
        description="force per volume, one entry per dimension: numbers, or formulas of x, y, z, t",
        examples=[[1e-6, 0, 0]],
    )

    inside: ClassVar[bool] = True
    second_order: ClassVar[bool] = False  # no moments of F_i go beyond the second Hermite tensor

    @field_validator("value")
    @classmethod
    def _two_or_three(cls, value):
        if len(value) not in (2, 3):
            raise ValueError(f"found {counted(len(value), 'component')}; allowed: one a dimension")
        return value

    def structure(self) -> dict:
        """What shapes the kernel text: all fields, of the force the form of its formulas alone."""
        forms = [component.structure() for component in self.components()]
        return self.model_dump(exclude={"value"}) | {"formulas": forms}

    def components(self, end: str = "") -> list[CellValue]:
        """The D components, parted into what kernels compute and numbers; raises FormulaError.

        `end` ends their names.
        """
        names = (f"force_{axis}{end}" for axis in "xyz")
        return [
            CellValue(name, value, len(self.value))
            for name, value in zip(names, self.value, strict=False)
        ]

    def source(self, lattice, collision, density, rho, u, F) -> list:
        """Q expressions F_i from the force F and the velocity u that collides (D each).

        `collision` offers feq(lattice, density, rho, u) and velocity(momentum, rho).
        """
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """A force has as many components as the lattice has dimensions, and formulas it knows.

        Those that differ from cell to cell are evaluated by speeds.require_forces.
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

"""Body forces: the source term F_i of a collision.

To add a forcing scheme, write one file with a class derived from `Forcing` and
`@register("forcing", name)` that defines `source`.
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from mpilbm.core.formulas.parser import FormulaError
from mpilbm.core.formulas.values import CellValue, FieldValue, Given, GivenVector, ramped
from mpilbm.core.quantity import FORCE_DENSITY, STEPS
from mpilbm.core.registry import Parameters
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice


class Forcing(Parameters):
    """A force per volume F: `value` in lattice units, D numbers or formulas, or an array.

    In the first `ramp` steps F is s(t) `value`, see mpilbm/core/formulas/ramp.py.

    The collision of the step from t to t + 1 uses F at time t + 1. Outputs after t steps subtract
    half of F at time t from the momentum. In one step the momentum of the box changes by the mean
    of F at t and at t + 1.

    The velocity with a force is u = (sum_i c_i f_i + F/2) / rho in terms of the incoming
    populations f, and (sum_i c_i f*_i - F/2) / rho in terms of the post-collision populations f*.
    If `inside` is True, the collision uses the velocity u and relaxes the force term together with
    f, see Collision. If it is False, the collision uses (sum_i c_i f_i) / rho = u - F/(2 rho), as
    without a force, and F_i is added to f*_i.
    """

    value: Annotated[GivenVector, FORCE_DENSITY] = Field(
        description="force per volume, one entry per dimension: numbers, or formulas of x, y, z, "
        "t; or a file with the force in each cell",
        examples=[[1e-6, 0, 0]],
    )

    ramp: Annotated[int, STEPS] = Field(
        0,
        ge=0,
        lt=2**31,
        description="steps in which the force rises smoothly from 0; 0: it is the given one from "
        "the start",
        examples=[2000],
    )

    inside: ClassVar[bool] = True
    second_order: ClassVar[bool] = False  # Hermite moments of F_i above the second order are zero

    @field_validator("value")
    @classmethod
    def _two_or_three(cls, value: tuple[Given, ...] | str) -> tuple[Given, ...] | str:
        if not isinstance(value, str) and len(value) not in (2, 3):
            raise ValueError(
                f"found {counted(len(value), 'component')}; allowed: one per dimension"
            )
        return value

    def structure(self) -> dict[str, Any]:
        """The properties that determine the kernel text: of `value` only the form, no `ramp`."""
        forms = [component.structure() for component in self.components()]
        return self.model_dump(exclude={"value", "ramp"}) | {"formulas": forms}

    def components(self, end: str = "") -> list[CellValue]:
        """The D components, each divided into a formula for the kernel and numbers for the host.

        `end` is a suffix of their names. Raises FormulaError for invalid formulas.
        """
        names = (f"force_{axis}{end}" for axis in "xyz")
        return [
            CellValue(name, ramped(value, self.ramp), len(self.value))
            for name, value in zip(names, self.value, strict=False)
        ]

    @property
    def by_cell(self) -> bool:
        """Whether some component is an array or a function that is no formula."""
        return any(isinstance(value, FieldValue) for value in self.value)

    def source(
        self,
        lattice: Lattice,
        collision: Collision,
        density: Expression,
        rho: Expression,
        u: Vector,
        F: Vector,
    ) -> list[Expression]:
        """Return Q expressions F_i from the force F and the velocity u of the collision, D each."""
        raise NotImplementedError

    def problems(self, case: Case) -> list[str]:
        """Errors: a wrong number of components, or formulas that cannot be evaluated.

        Formulas of x, y and z are not evaluated here; case/velocity_bounds.py evaluates them.
        """
        if len(self.value) != case.lattice.D:
            return [f"value: found {len(self.value)} components; allowed: {case.lattice.D}"]
        if self.by_cell and not case.single_fluid:
            return [
                "value: found an array or a function that is no formula; allowed for coupled "
                "fluids: numbers and formulas"
            ]
        found = []
        if self.ramp and self.by_cell:
            found.append(
                "ramp: found a force with a value for each cell; allowed with a ramp: numbers and "
                "formulas; give one of these, or remove the ramp"
            )
        for k, value in enumerate(self.value):
            if isinstance(value, FieldValue):
                continue
            try:
                given = CellValue("force", value, case.lattice.D)
                alike = not given.coordinates
                where = case.domain.size, case.precision.compute, 0, 1
                problem = given.problem(*where) if alike else ""
            except FormulaError as error:
                problem = str(error)
            found += [f"value.{k}: {problem}"] if problem else []
        return found

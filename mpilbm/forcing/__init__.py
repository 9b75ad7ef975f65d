"""Body forces: the source term F_i of a collision."""

from typing import ClassVar

from pydantic import field_validator

from mpilbm.registry import Parameters


class Forcing(Parameters):
    """A force per volume; `value` in lattice units, D components.

    With a force the velocity is u = (sum_i c_i f_i + F/2) / rho from what streams in, and
    (sum_i c_i f*_i - F/2) / rho from what leaves the cell. A force `inside` the collision collides
    at u and is relaxed with f (see Collision); one outside lets the cell collide at
    u - F/(2 rho) = (sum_i c_i f_i) / rho as if there were none, and adds F_i to what it leaves.
    """

    value: tuple[float, ...]

    inside: ClassVar[bool] = True
    second_order: ClassVar[bool] = False  # no moments of F_i go beyond the second Hermite tensor

    @field_validator("value")
    @classmethod
    def _two_or_three(cls, value):
        if len(value) not in (2, 3):
            raise ValueError(f"found {len(value)} components; allowed: one a dimension")
        return value

    def structure(self) -> dict:
        """What shapes the kernel text: all fields but the force itself."""
        return self.model_dump(exclude={"value"})

    def source(self, lattice, collision, density, rho, u, F) -> list:
        """Q expressions F_i from the force F and the velocity u that collides (D each).

        `collision` offers feq(lattice, density, rho, u) and velocity(momentum, rho).
        """
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """A force has as many components as the lattice has dimensions."""
        if len(self.value) != case.lattice.D:
            return [f"value: found {len(self.value)} components; allowed: {case.lattice.D}"]
        return []

"""The free motion: a body moves by the force of the fluid, its weight, springs and contacts."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from mpilbm.core.quantity import (
    ANGULAR_VELOCITY,
    DAMPER,
    FRICTION,
    GRAVITY,
    LENGTH,
    SOLID_DENSITY,
    SPRING,
    TORSION,
    VELOCITY,
)
from mpilbm.core.registry import register
from mpilbm.core.units import counted
from mpilbm.model.case import Case
from mpilbm.physics.motions import Floats, Placement, Responding
from mpilbm.physics.rigid_body import Inertia, State

Degree = Literal["x", "y", "z", "rotation", "rotation_x", "rotation_y", "rotation_z"]
PER_AXIS = "one entry per dimension"


@register("motions", "free")
class Free(Responding):
    """A body that moves by the force of the fluid, its weight and springs.

        m dU/dt = F + (m - V) g - spring (x - x_0) - damper U + contacts,   m = density V
        dL/dt = T - torsion angle - friction spin + contacts,               L = density I spin

    F and T are force and torque of the fluid around the body; in the fluid, which has rho_0 = 1,
    gravity does not act, so the weight is that of the body less that of the fluid that it
    displaces. A uniform [force] on the fluid acts on the body as on the fluid in its place: V times
    the force is part of F. The body may have any finite shape. Its centre is the centre of mass,
    and I the tensor of inertia of the shape for a density of 1; x_0 is the centre in the case.

    The mass is that of the body, and the inertia of the fluid inside is subtracted from the force
    on its cells as in the file of forces (see physics/rigid_body.py), so light bodies are stable:
    densities of 0.5 to 100 are tested. Each step uses the force of the step before, so the next
    position is known before the step, and the device computes while the host awaits the force.

    Near walls and other bodies a repulsion replaces the flow in gaps that cells do not resolve. It
    begins at the gap `contact`, and grows as the square of (contact - gap):

        F_contact = S ((contact - gap) / contact)^2
        S = max(12 (m + V) contact_speed^2 / contact, 8 |m - V| g)

    A body that approaches at `contact_speed` without drag stops at half of this gap, and one that
    lies on the floor is at 0.65 of it or more. Each part of the surface that is near has such a
    force: a bar that lies on two bumps of a body is held at both. The repulsion keeps energy, and
    has no friction. A body that touches a wall or another body ends the run with the exit code 3,
    as one that leaves the box through an opening does.
    """

    density: Annotated[float, SOLID_DENSITY] = Field(
        gt=0, description="density of the body; that of the fluid at rest is 1", examples=[1.15]
    )
    gravity: Annotated[float | tuple[float, ...], GRAVITY] = Field(
        0.0,
        description="acceleration of gravity: a number, downwards along the last axis, or a vector",
        examples=[2e-5, [0, 0, -2e-5]],
    )
    fixed: tuple[Degree, ...] = Field(
        (),
        description="degrees of freedom that the body does not have; `rotation`: all rotations",
        examples=[["x", "rotation"]],
    )
    velocity: Annotated[tuple[float, ...] | None, VELOCITY] = Field(
        None, description=f"velocity at the start, {PER_AXIS}", examples=[[0.01, 0, 0]]
    )
    rate: Annotated[float | tuple[float, ...], ANGULAR_VELOCITY] = Field(
        0.0,
        description="angular velocity at the start: in 2D a number, in 3D a vector",
        examples=[0.001],
    )
    spring: Annotated[tuple[float, ...] | None, SPRING] = Field(
        None, description=f"stiffness of springs, {PER_AXIS}", examples=[[0, 0.01]]
    )
    damper: Annotated[tuple[float, ...] | None, DAMPER] = Field(
        None, description=f"force per velocity of dampers, {PER_AXIS}", examples=[[0, 0.1]]
    )
    torsion: Annotated[float, TORSION] = Field(
        0.0, ge=0, description="stiffness of a spring against the only rotation", examples=[1.0]
    )
    friction: Annotated[float, FRICTION] = Field(
        0.0, ge=0, description="torque per rate of a damper of the only rotation", examples=[1.0]
    )
    contact: Annotated[float, LENGTH] = Field(
        2.0, gt=0, description="gap at which the repulsion begins", examples=[2.0]
    )
    contact_speed: Annotated[float, VELOCITY] = Field(
        0.1, gt=0, description="speed that the repulsion stops in half of this gap", examples=[0.1]
    )

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """That at t = 0."""
        many = np.shape(t)
        turned = np.broadcast_to(np.eye(3), (*many, 3, 3))
        zero = np.zeros((*many, 3))
        velocity, spin = self._start
        return Placement(turned, centre, centre + zero, velocity + zero, spin + zero, zero[..., 0])

    @property
    def _start(self) -> tuple[Floats, Floats]:
        """Velocity and spin at t = 0, (3,) each."""
        velocity, spin = np.zeros(3), np.zeros(3)
        velocity[: len(self.velocity or ())] = self.velocity or ()
        rate = np.atleast_1d(np.array(self.rate, float))
        spin[3 - rate.size :] = rate
        return velocity, spin

    def weight(self, volume: float, D: int) -> Floats:
        """(m - V) g, (3,)."""
        found = np.zeros(3)
        if isinstance(self.gravity, tuple):
            found[:D] = self.gravity
        else:
            found[D - 1] = -self.gravity
        return (self.density - 1) * volume * found

    def strength(self, volume: float, D: int, contact: float) -> float:
        """S of the repulsion that begins at the gap `contact`."""
        moving = 12 * (self.density + 1) * volume * self.contact_speed**2 / contact
        return max(moving, 8 * float(np.linalg.norm(self.weight(volume, D))))

    def inertia(
        self, volume: float, moments: Floats, endless: tuple[int, ...], D: int, rest: Floats
    ) -> Inertia:
        """What determines the motion of a shape; it turns about all of its `endless` axes only."""
        names = [*"xyz"[:D]]
        free = np.array([a in names and a not in self.fixed for a in "xyz"])
        turns = np.array([self._turns(a, endless, D) for a in range(3)])
        spring, damper = np.zeros(3), np.zeros(3)
        spring[:D], damper[:D] = self.spring or [0] * D, self.damper or [0] * D
        given = spring, damper, self.torsion, self.friction
        return Inertia(volume, moments, self.density, free, turns, *given, rest)

    def _turns(self, axis: int, endless: tuple[int, ...], D: int) -> bool:
        fixed = "rotation" in self.fixed or f"rotation_{'xyz'[axis]}" in self.fixed
        return not (fixed or (D == 2 and axis < 2) or any(a != axis for a in endless))

    def start(self, inertia: Inertia, centre: Floats) -> State:
        """The state at t = 0."""
        return inertia.start(centre, *self._start)

    def problems(self, case: Case) -> list[str]:
        """Errors: vectors of another dimension, negative springs, motions that are fixed."""
        D, found = case.dimensions, []
        for name in ("gravity", "velocity", "spring", "damper"):
            given = getattr(self, name)
            if isinstance(given, tuple) and len(given) != D:
                found.append(f"{name}: found {counted(len(given), 'entry')}; allowed: {D}")
        rates = self.rate if isinstance(self.rate, tuple) else (self.rate,)
        if len(rates) != (1 if D == 2 else 3) and any(rates):
            allowed = "a number in 2D" if D == 2 else "3 entries in 3D"
            found.append(f"rate: found {counted(len(rates), 'entry')}; allowed: {allowed}")
        for name in ("spring", "damper"):
            if any(each < 0 for each in getattr(self, name) or ()):
                found.append(f"{name}: found a negative entry; allowed: 0 or more")
        names = "xyz"[:D]
        if wrong := [each for each in self.fixed if each in "xyz" and each not in names]:
            found.append(f"fixed: found {wrong[0]}; allowed in 2D: x, y, rotation")
        if found:
            return found
        velocity, spin = self._start
        turns = [self._turns(a, (), D) for a in range(3)]
        for k, a in enumerate(names):
            if a in self.fixed and velocity[k]:
                found.append(f"velocity.{a}: found {velocity[k]:g}, and {a} is fixed; remove one")
        if any(w and not free for w, free in zip(spin, turns, strict=True)):
            found.append("rate: found a rotation that is fixed; remove it, or change `fixed`")
        if (self.torsion or self.friction) and sum(turns) != 1:
            found.append(
                f"torsion and friction act about one axis, and the body turns about {sum(turns)}; "
                'fix the others, such as fixed = ["rotation_x", "rotation_y"]'
            )
        force = case.force_on(0)
        if any(value.local or value.field for value in force):
            found.append(
                "a free body in a [force] that differs from cell to cell; allowed: a uniform "
                "force, which may depend on t"
            )
        return found

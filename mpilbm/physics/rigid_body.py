"""The equations of motion of a rigid body, and its state from step to step.

A step uses the force that the cells of the body took from the fluid in the step before,

    m dU/dt = F_cells + d(V U)/dt + F_more,        m = density V,     rho_0 = 1
    dL/dt   = T_cells + d(I spin)/dt + T_more,     L = density I spin

with the inertia of the fluid inside the body, which moves with it [Feng & Michaelides 2009,
Comput. Fluids 38, 370], from the same step as F_cells. This term takes the change of the fluid
inside out of F_cells, so the body has its own mass, whatever its density: with (density - 1) V as
the mass in its place a body of the density of the fluid would have none. Where the cells of the
body hold only the part b of V (cells that are partly solid follow it later), the acceleration of a
step contains (1 - b) / density of that of the step before, which decays for densities above 1 - b;
`Free.problems` refuses others. The pressure of the fluid outside (the added mass) needs no implicit
treatment: sound takes several steps across the body.

Springs act at the place half a step later, and dampers at the mean velocity of the step: the
undamped oscillator keeps its amplitude.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TURNS = 3  # iterations of orientation and angular velocity in a step
_CROSS = np.zeros((3, 3, 3))
for _a, _b, _c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _CROSS[_a, _b, _c], _CROSS[_b, _a, _c] = -1.0, 1.0


@dataclass(frozen=True, eq=False)
class State:
    """A free body after t steps; vectors have 3 components, of which 2D uses x and y, and z of
    rotations.

    centre    the centre of the shape; outside the box beyond periodic faces
    turn      quaternion (w, x, y, z) of the rotation from the shape of the case
    angle     about the only free axis of rotation, else of the whole rotation, rad
    velocity  of the centre, cells/step
    spin      angular velocity, rad/step
    angular   angular momentum about the centre for a density of 1, I spin: a restart with
              another density keeps the spin
    gained, turned  the change of momentum and angular momentum of the fluid inside in the step
    force, torque   on the cells, in the step that ended at t; torque about the centre
    """

    centre: Floats
    turn: Floats
    angle: Floats
    velocity: Floats
    spin: Floats
    angular: Floats
    gained: Floats
    turned: Floats
    force: Floats
    torque: Floats

    def packed(self) -> Floats:
        """All numbers, (WIDTH,), for a checkpoint."""
        return np.concatenate([np.atleast_1d(getattr(self, f.name)) for f in fields(self)])

    @classmethod
    def unpacked(cls, numbers: Floats) -> Self:
        """The inverse of `packed`."""
        parts = np.split(numbers, np.cumsum([*SIZES.values()])[:-1])
        return cls(**{name: part.copy() for name, part in zip(SIZES, parts, strict=True)})

    @property
    def rotation(self) -> Floats:
        """R, (3, 3)."""
        return rotation_of(self.turn)

    def at(self, force: Floats, torque: Floats) -> Self:
        """With the force and torque on the cells."""
        return replace(self, force=force, torque=torque)


SIZES = {f.name: 3 for f in fields(State)} | {"turn": 4, "angle": 1}
WIDTH = sum(SIZES.values())


@dataclass(frozen=True, eq=False)
class Inertia:
    """What of a body its motion depends on.

    volume   V; in 2D the area; of an infinite body that of its part in the box
    moments  (3, 3), the tensor of inertia of a density 1 about the centre, along the axes of the
             shape
    density  of the body, rho_0 = 1
    free     (3,) bool, the directions in which the centre moves
    turns    (3,) bool, the axes of the box about which it turns
    spring, damper    (3,), for each direction
    torsion, friction  spring and damper of the rotation about the only axis of `turns`
    rest     (3,), the place of the centre where the spring exerts no force
    """

    volume: float
    moments: Floats
    density: float
    free: NDArray[np.bool_]
    turns: NDArray[np.bool_]
    spring: Floats
    damper: Floats
    torsion: float
    friction: float
    rest: Floats

    @property
    def mass(self) -> float:
        """density V."""
        return self.density * self.volume

    def tensor(self, rotation: Floats) -> Floats:
        """The moments of inertia of a density 1 about the axes of the box, (3, 3)."""
        found: Floats = rotation @ self.moments @ rotation.T
        return found

    def start(self, centre: Floats, velocity: Floats, spin: Floats) -> State:
        """The state before the first step."""
        o = np.zeros(3)
        angular = self.moments @ spin
        turn, angle = np.array([1.0, 0, 0, 0]), np.zeros(1)
        return State(centre, turn, angle, velocity, spin, angular, o, o, o, o)

    def continues(self, state: State) -> bool:
        """Whether a body in this state can go on: one with one axis has turned about it only."""
        axes = np.flatnonzero(self.turns)
        if axes.size != 1:
            return True
        found: bool = np.allclose(state.turn, _turn_about(int(axes[0]), float(state.angle[0])))
        return found

    def advanced(self, of: State, force: Floats, torque: Floats) -> State:
        """The state a step later, with the further force and torque about the centre (F_more)."""
        mass, U, half = self.mass, of.velocity, self.damper / 2
        pull = self.spring * (of.centre + U / 2 - self.rest)
        push = of.force + of.gained + force - pull
        velocity = np.where(self.free, ((mass - half) * U + push) / (mass + half), 0.0)
        centre = of.centre + (U + velocity) / 2
        turn, angle, spin, angular = self._turned(of, of.torque + of.turned + torque)
        moved = self.tensor(rotation_of(turn)) @ spin - self.tensor(of.rotation) @ of.spin
        gained = self.volume * (velocity - U)
        o = np.zeros(3)
        return State(centre, turn, angle, velocity, spin, angular, gained, moved, o, o)

    def _turned(self, of: State, torque: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Quaternion, angle, spin and angular momentum a step later."""
        axes = np.flatnonzero(self.turns)
        if not axes.size:
            return of.turn, of.angle, np.zeros(3), np.zeros(3)
        if axes.size == 1:
            return self._about(int(axes[0]), of, float(torque[axes[0]]))
        angular = of.angular + np.where(self.turns, torque / self.density, 0.0)
        spin, turn = of.spin, of.turn
        for _ in range(TURNS):
            turn = turned_by((of.spin + spin) / 2, of.turn)
            tensor = self.tensor(rotation_of(turn))[np.ix_(axes, axes)]
            spin = np.zeros(3)
            spin[axes] = np.linalg.solve(tensor, angular[axes])
        half = np.arctan2(np.linalg.norm(turn[1:]), abs(turn[0]))
        return turn, np.array([2 * half]), spin, angular

    def _about(self, axis: int, of: State, torque: float) -> tuple[Floats, Floats, Floats, Floats]:
        """The rotation about an axis of the box; the moment of inertia about it is constant."""
        moment = self.density * self.tensor(of.rotation)[axis, axis]
        old, angle, half = float(of.spin[axis]), float(of.angle[0]), self.friction / 2
        torque -= self.torsion * (angle + old / 2)
        new = ((moment - half) * old + torque) / (moment + half)
        angle += (old + new) / 2
        spin, turn = np.zeros(3), _turn_about(axis, angle)
        spin[axis] = new
        return turn, np.array([angle]), spin, moment / self.density * spin


def _turn_about(axis: int, angle: float) -> Floats:
    """The quaternion of a rotation about an axis of the box."""
    turn = np.zeros(4)
    turn[0], turn[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
    return turn


def rotation_of(turn: Floats) -> Floats:
    """The rotation matrix of a unit quaternion (w, x, y, z)."""
    w, v = turn[0], turn[1:]
    cross = _CROSS @ v
    found: Floats = (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross
    return found


def turned_by(spin: Floats, turn: Floats) -> Floats:
    """The quaternion after a step with a constant angular velocity."""
    angle = float(np.sqrt(spin @ spin))
    w = np.cos(angle / 2)
    v = spin * (np.sin(angle / 2) / angle if angle > 0 else 0.5)
    a, b = turn[0], turn[1:]
    found = np.concatenate([[w * a - v @ b], w * b + a * v + np.cross(v, b)])
    found /= np.sqrt(found @ found)
    return found

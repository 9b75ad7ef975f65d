"""The path of a body that moves freely: its states at the last steps of a run."""

from typing import ClassVar

import numpy as np

from mpilbm.core.errors import BodyError
from mpilbm.model.case import BoundedLattice
from mpilbm.physics.motions import Floats, Placement, Responding
from mpilbm.physics.rigid_body import Inertia, State, rotation_of
from mpilbm.solids.sampled_shape import Rigid

KEPT = 4  # states: those before and after a step, and that of the step before


class FreePath:
    """The states of a free body, the same on all ranks; `last`: the time of the newest one.

    It gives the place of the body at these times and between them, as a motion does.
    """

    responds: ClassVar[bool] = True
    fastest: ClassVar[float] = 0.5  # cells per step of the centre, just below the speed of sound

    def __init__(
        self,
        case: BoundedLattice,
        label: str,
        motion: Responding,
        shape: Rigid,
        size: tuple[int, ...],
    ):
        self.label, self.motion, self.D = label, motion, case.dimensions
        self.volume, moments = shape.volume(size), shape.inertia(size)
        middle = shape.middle
        self.inertia: Inertia = motion.inertia(self.volume, moments, shape.endless, self.D, middle)
        self.strength = motion.strength(self.volume, self.D)
        self.weight = motion.weight(self.volume, self.D)
        self._states: dict[int, State] = {}
        self.begin(0, motion.start(self.inertia, middle))

    def begin(self, t: int, state: State) -> None:
        """Continue from this state at time t."""
        self._states, self.last = {t: state}, t

    def at(self, t: int) -> State:
        """The state after t steps; KeyError if it is not known."""
        return self._states[t]

    def took(self, force: Floats, torque: Floats) -> None:
        """Set the force and torque on the cells in the step that ended last."""
        self._states[self.last] = self._states[self.last].at(force, torque)

    def advance(self, force: Floats, torque: Floats) -> None:
        """Add the next state, with these forces besides those of the fluid; BodyError."""
        t, state = self.last + 1, self.inertia.advanced(self.at(self.last), force, torque)
        speed = float(np.abs(state.velocity).max())
        if not speed < self.fastest or not np.isfinite(state.spin).all():
            raise BodyError(
                f"body.{self.label}.motion: the body moves by {speed:.3g} cells in step {t}; "
                f"allowed: below {self.fastest:g}; use a smaller time step, or a weaker gravity",
                step=t,
            )
        self._states[t], self.last = state, t
        self._states.pop(t - KEPT, None)

    def placement(self, t: float | Floats, centre: Floats) -> Placement:
        """The placement at time t, in the middle between two states the mean; or at times (n,)."""
        if np.ndim(t):
            each = [self.placement(float(one), centre) for one in np.asarray(t)]
            moves = ("rotation", "point", "velocity", "spin", "angle")
            parts = {name: np.stack([getattr(one, name) for one in each]) for name in moves}
            return Placement(origin=centre, **parts)
        lower = int(np.floor(t))
        a = self.at(lower)
        if t == lower:
            return self._of(centre, a.turn, a)
        b, part = self.at(lower + 1), float(t) - lower
        names = ("centre", "velocity", "spin", "angle")
        mean = {n: (1 - part) * getattr(a, n) + part * getattr(b, n) for n in names}
        turn = (1 - part) * a.turn + part * b.turn
        return self._of(centre, turn / np.linalg.norm(turn), State(**{**vars(a), **mean}))

    def _of(self, centre: Floats, turn: Floats, state: State) -> Placement:
        place, moves = (state.centre, state.velocity), (state.spin, state.angle[0])
        return Placement(rotation_of(turn), centre, *place, *moves)

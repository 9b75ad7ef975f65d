"""Contacts of bodies that move freely: the repulsion in small gaps, and bodies that touch.

A gap is measured between the surfaces of two bodies, or of a body and a face of the box. With s =
(contact - gap) / contact between 0 and 1 the bodies repel each other with F = S s^2 along the
normal, see physics/motions/free.py; of two free bodies the smaller S and the larger contact count.
Each part of the surface that is near another one has such a force, see near_parts.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod

import numpy as np

from mpilbm.core.errors import BodyError
from mpilbm.model.case import BoundedLattice
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.physics.rigid_body import rotation_of, turned_by
from mpilbm.solids import Floats
from mpilbm.solids.distance_field import BAND, SPACING
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.gaps import gaps
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solids.near_parts import near_parts
from mpilbm.solids.periodic_images import ShapeInBox
from mpilbm.solids.sampled_shape import Rigid, sampled
from mpilbm.solids.shapes import Shape

SAMPLED = 2**20  # points of the field of distances of a body at rest, at most: seconds of a core


@dataclass(frozen=True, eq=False)
class Pose:
    """A shape in the box, with its centre and rotation; `path` of a free body, else None."""

    label: str
    shape: Rigid
    centre: Floats
    rotation: Floats
    path: FreePath | None = None


Loads = dict[str, tuple[Floats, Floats]]  # force and torque about the centre, by label


class Contacts:
    """All contacts of the free bodies among `bodies`, the moving bodies of a case.

    At each time the same on all ranks.
    """

    def __init__(self, case: BoundedLattice, bodies: tuple[MovingBody, ...]):
        self._bodies, self._D = bodies, case.dimensions
        self._cells = (*case.domain.size, 1)[:3]
        self._size = np.array(self._cells, float)
        self._periods = bodies[0].periods
        faces = {face: each for each in case.boundaries for face in each.where}
        self._open = {name for name, each in faces.items() if each.face_flow is not FaceFlow.CLOSED}
        self._poses: list[Pose] = []
        self._others: list[tuple[str, ShapeInBox]] = []
        for body in case.bodies:
            if body.motion is not None or body.shape is None:
                continue
            if rigid := _rigid_at_rest(body.shape, case.domain.size):
                self._poses.append(Pose(body.label, rigid, rigid.middle, np.eye(3)))
            else:
                self._others.append((body.label, body.shape.in_box(case.domain)))

    def loads(self, t: int) -> Loads:
        """The repulsion during the step from t to t + 1; BodyError if bodies touch.

        Of free bodies at the places half a step later that follow from their velocities and spins.
        """
        poses = [self._pose(body, t) for body in self._bodies]
        found: Loads = {}
        for k, pose in enumerate(poses):
            if pose.path:
                found.setdefault(pose.label, (np.zeros(3), np.zeros(3)))
                self._faces(pose, t, found)
                self._inside(pose, t)
            for other in (*poses[k + 1 :], *self._poses):
                if pose.path or other.path:
                    self._pair(pose, other, t, found)
        return found

    def _pose(self, body: MovingBody, t: int) -> Pose:
        label, path = body.case.bodies[body.number].label, body.motion
        if isinstance(path, FreePath):
            state = path.at(t)
            centre = state.centre + state.velocity / 2
            turned = rotation_of(turned_by(state.spin / 2, state.turn))
            return Pose(label, body.shape, centre, turned, path)
        at = body.placement(t + 0.5)
        return Pose(label, body.shape, at.of(body.middle), at.rotation)

    def _faces(self, pose: Pose, t: int, found: Loads) -> None:
        assert pose.path
        contact = pose.path.motion.contact
        for a in range(self._D):
            if self._periods[a] > 0 or a in pose.shape.endless:
                continue
            for sign in (1, -1):
                face, normal = f"{'xyz'[a]}{'-+'[sign < 0]}", np.zeros(3)
                normal[a], opening = sign, face in self._open
                away = pose.centre[a] if sign > 0 else self._size[a] - pose.centre[a]
                if away - pose.shape.reach > contact:
                    continue
                down = -normal @ pose.rotation
                below, point = pose.shape.furthest(down)
                gap = float(away - below)
                if not gap > 0:
                    raise self._ends(pose, t, face, opening)
                if opening:
                    continue
                for share, near, arm in self._beside(pose.shape, down, gap, point, contact):
                    force = share * pose.path.strength * (1 - near / contact) ** 2 * normal
                    _add(found, pose, force, pose.rotation @ arm)

    def _beside(
        self, shape: Rigid, down: Floats, least: float, lowest: Floats, contact: float
    ) -> list[tuple[float, float, Floats]]:
        """Share, gap and place of the parts of a shape near a face that is `down`, a unit vector.

        least, lowest: the least gap, and the place where it is.
        """
        if least >= contact or shape.is_round:
            return [(1.0, least, lowest)] if least < contact else []
        points = shape.outline(self._cells)
        height = (points * down).sum(axis=1)
        parts = near_parts(
            least + height.max() - height, points, shape.spacing(self._cells), contact
        )
        return [(part.share, part.gap, part.mean(points)) for part in parts]

    def _ends(self, pose: Pose, t: int, face: str, opening: bool) -> BodyError:
        """The error of a body at a face."""
        if not opening:
            return self._touches(pose, t, f"touches the wall at {face}")
        return BodyError(
            f"body.{pose.label}.motion: the body leaves the box through {face} in step {t + 1}; "
            "bodies do not cross openings; use a longer box, or end the run before",
            step=t + 1,
        )

    def _touches(self, pose: Pose, t: int, text: str) -> BodyError:
        fix = "use smaller cells, or a larger contact or contact_speed"
        return BodyError(
            f"body.{pose.label}.motion: the body {text} in step {t + 1}; bodies do not overlap "
            f"walls or each other; {fix}, or end the run before",
            step=t + 1,
        )

    def _pair(self, one: Pose, two: Pose, t: int, found: Loads) -> None:
        paths = [each.path for each in (one, two) if each.path]
        contact = max(path.motion.contact for path in paths)
        if one.shape.field and two.shape.field:
            contact = min(contact, BAND)  # larger gaps between fields are not known
        for offset in self._offsets(one, two, contact):
            near = gaps(one, two, offset, self._cells, contact)
            if any(not part.gap > 0 for part in near):
                free, other = (one, two) if one.path else (two, one)
                raise self._touches(free, t, f"touches body '{other.label}'")
            strength = min(path.strength_within(contact) for path in paths)
            for part in near:
                force = part.share * strength * (1 - part.gap / contact) ** 2 * part.normal
                if one.path:
                    _add(found, one, force, part.point)
                if two.path:
                    _add(found, two, -force, part.point + offset)

    def _offsets(self, one: Pose, two: Pose, contact: float) -> Iterator[Floats]:
        """From the centre of the second body to that of the first, of all images near enough.

        Along a periodic axis a long body may be near two images of another one.
        """
        r, most = one.centre - two.centre, one.shape.reach + two.shape.reach + contact
        periods, whole = self._periods, {*one.shape.endless, *two.shape.endless}
        r = r - np.where(periods > 0, np.round(r / np.where(periods > 0, periods, 1)) * periods, 0)
        r[[a in whole or a >= self._D for a in range(3)]] = 0.0
        if float(np.linalg.norm(r)) > most:  # the nearest image
            return
        turns = [(0, -1, 1) if periods[a] > 0 and a not in whole else (0,) for a in range(3)]
        for turn in product(*turns):
            offset = r + periods * turn
            if float(np.linalg.norm(offset)) <= most:
                yield offset

    def _inside(self, pose: Pose, t: int) -> None:
        """BodyError if the surface is in a body at rest whose distance is not known."""
        for label, shape in self._others:
            at, D, endless = pose.centre.copy(), self._D, list(pose.shape.endless)
            at[endless] = self._size[endless] / 2
            wraps = self._periods > 0
            at[wraps] %= self._periods[wraps]
            reach = np.full(3, pose.shape.reach)
            crosses = wraps & ((at < reach) | (at + reach > self._size))
            reach[endless], reach[crosses] = np.inf, np.inf
            low, high = (np.array(bound, float) for bound in shape.bounds())
            if (at[:D] + reach[:D] < low).any() or (at[:D] - reach[:D] > high).any():
                continue
            points = pose.shape.outline(self._cells) @ pose.rotation.T + at
            points[:, wraps] %= self._periods[wraps]
            if shape.inside(*points.T[:D]).any():
                raise self._touches(pose, t, f"touches body '{label}'")


def _rigid_at_rest(shape: Shape, size: tuple[int, ...]) -> Rigid | None:
    """The surface of a body at rest; None without formulas if it is infinite, large or a scan."""
    if rigid := shape.rigid(len(size)):
        return rigid
    if not shape.has_surface:
        return None
    sides = [b - a for a, b in zip(*shape.bounds(), strict=True)]
    if not all(isfinite(side) for side in sides) or prod(sides) > SAMPLED * SPACING ** len(size):
        return None
    try:
        return sampled(shape, size)
    except ValueError:  # no point of the field is in it
        return None


def _add(found: Loads, pose: Pose, force: Floats, arm: Floats) -> None:
    F, T = found.get(pose.label, (np.zeros(3), np.zeros(3)))
    found[pose.label] = F + force, T + np.cross(arm, force)

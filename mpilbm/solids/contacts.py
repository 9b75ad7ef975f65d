"""Contacts of bodies that move freely: the repulsion in small gaps, and bodies that touch.

A gap is measured between the surfaces of two bodies, or of a body and a face of the box. With s =
(contact - gap) / contact between 0 and 1 the bodies repel each other with F = S s^2 along the
normal, see physics/motions/free.py; of two free bodies the smaller S and the larger contact count.
"""

from dataclasses import dataclass

import numpy as np

from mpilbm.core.errors import BodyError
from mpilbm.model.case import BoundedLattice
from mpilbm.physics.boundary_capabilities import FaceFlow
from mpilbm.solids import Floats
from mpilbm.solids.free_path import FreePath
from mpilbm.solids.moving_bodies import MovingBody
from mpilbm.solids.sampled_shape import Rigid
from mpilbm.solids.shapes import ShapeInBox

SLOPE = 1e-4  # cells, of differences of distances


@dataclass(frozen=True, eq=False)
class Pose:
    """A shape in the box, with its centre and rotation; `path` of a free body, else None."""

    label: str
    shape: Rigid
    centre: Floats
    rotation: Floats
    path: FreePath | None = None


@dataclass(frozen=True, eq=False)
class Near:
    """Two surfaces near each other: the gap, the unit normal towards the first one, and a point."""

    gap: float
    normal: Floats
    point: Floats


Loads = dict[str, tuple[Floats, Floats]]  # force and torque about the centre, by label


class Contacts:
    """All contacts of the free bodies among `bodies`, the moving bodies of a case.

    At each time the same on all ranks.
    """

    def __init__(self, case: BoundedLattice, bodies: tuple[MovingBody, ...]):
        self._bodies, self._D = bodies, case.dimensions
        self._size = np.array((*case.domain.size, 1)[:3], float)
        self._periods = bodies[0].periods
        faces = {face: each for each in case.boundaries for face in each.where}
        self._open = {name for name, each in faces.items() if each.face_flow is not FaceFlow.CLOSED}
        self._poses: list[Pose] = []
        self._others: list[tuple[str, ShapeInBox]] = []
        for body in case.bodies:
            if body.motion is not None or body.shape is None:
                continue
            if rigid := body.shape.rigid(case.dimensions):
                self._poses.append(Pose(body.label, rigid, rigid.middle, np.eye(3)))
            else:
                self._others.append((body.label, body.shape.in_box(case.domain)))

    def loads(self, t: int) -> Loads:
        """The repulsion during the step from t to t + 1; BodyError if bodies touch.

        Of free bodies at the places half a step later that follow from their velocities.
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
            return Pose(label, body.shape, centre, state.rotation, path)
        at = body.placement(t + 0.5)
        return Pose(label, body.shape, at.of(body.middle), at.rotation)

    def _faces(self, pose: Pose, t: int, found: Loads) -> None:
        assert pose.path
        (below, above), contact = pose.shape.extent(pose.rotation), pose.path.motion.contact
        for a in range(self._D):
            if self._periods[a] > 0 or a in pose.shape.endless:
                continue
            for sign in (1, -1):
                lower, upper = pose.centre[a] - below[a], self._size[a] - pose.centre[a] - above[a]
                gap, face = float(lower if sign > 0 else upper), f"{'xyz'[a]}{'-+'[sign < 0]}"
                opening = face in self._open
                if not gap > 0:
                    raise self._ends(pose, t, face, opening)
                if gap < contact and not opening:
                    normal = np.zeros(3)
                    normal[a] = sign
                    arm = support(pose, -normal)
                    force = pose.path.strength * (1 - gap / contact) ** 2 * normal
                    _add(found, pose, force, arm)

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
        offset = self._offset(one, two)
        if np.linalg.norm(offset) - one.shape.reach - two.shape.reach > contact:
            return
        near = nearest(one, two, offset, tuple(int(n) for n in self._size))
        if not near.gap > 0:
            free, other = (one, two) if one.path else (two, one)
            raise self._touches(free, t, f"touches body '{other.label}'")
        if near.gap < contact:
            strength = min(path.strength for path in paths)
            force = strength * (1 - near.gap / contact) ** 2 * near.normal
            if one.path:
                _add(found, one, force, near.point)
            if two.path:
                _add(found, two, -force, near.point + offset)

    def _offset(self, one: Pose, two: Pose) -> Floats:
        """From the centre of the second body to that of the first, of the nearest images."""
        r = one.centre - two.centre
        periods = np.where(self._periods > 0, self._periods, np.inf)
        r = r - np.where(self._periods > 0, np.round(r / periods) * self._periods, 0)
        for a in {*one.shape.endless, *two.shape.endless, *range(self._D, 3)}:
            r[a] = 0.0
        return r

    def _inside(self, pose: Pose, t: int) -> None:
        """BodyError if the surface is in a body at rest whose distance is not known."""
        for label, shape in self._others:
            at, D = pose.centre.copy(), self._D
            wraps = self._periods > 0
            at[wraps] %= self._periods[wraps]
            low, high = (np.array(bound, float) for bound in shape.bounds())
            reach = pose.shape.reach
            if (at[:D] + reach < low).any() or (at[:D] - reach > high).any():
                continue
            points = pose.shape.points(tuple(int(n) for n in self._size)) @ pose.rotation.T + at
            points[:, wraps] %= self._periods[wraps]
            if shape.inside(*points.T[:D]).any():
                raise self._touches(pose, t, f"touches body '{label}'")


def _add(found: Loads, pose: Pose, force: Floats, arm: Floats) -> None:
    F, T = found.get(pose.label, (np.zeros(3), np.zeros(3)))
    found[pose.label] = F + force, T + np.cross(arm, force)


def support(pose: Pose, direction: Floats) -> Floats:
    """The point of a shape that is furthest in a direction, from the centre, (3,)."""
    n, q = pose.rotation.T @ direction, np.zeros(3)
    n[np.abs(n) < SLOPE] = 0.0
    for a, half in enumerate(pose.shape.halves):
        if np.isfinite(half):
            q[a] += np.sign(n[a]) * half
    axes = list(pose.shape.round_axes)
    across = float(np.linalg.norm(n[axes])) if axes else 0.0
    if across > 0:
        q[axes] += pose.shape.radius * n[axes] / across
    found: Floats = pose.rotation @ q
    return found


def nearest(one: Pose, two: Pose, offset: Floats, size: tuple[int, ...]) -> Near:
    """The gap between two bodies; `point` and `offset` from the centres of the first and second.

    Exact outside of bodies of which one is round, else from points on their surfaces.
    """
    if one.shape.is_round:
        gap, normal = _distance(two, offset)
        return Near(gap - one.shape.radius, normal, -one.shape.radius * normal)
    if two.shape.is_round:
        gap, normal = _distance(one, -offset)
        point = two.shape.radius * normal * -1 - offset
        return Near(gap - two.shape.radius, -normal, point)
    found = []
    for a, b, r, sign in ((one, two, offset, 1), (two, one, -offset, -1)):
        points = a.shape.points(size) @ a.rotation.T
        k = int(np.argmin(b.shape.distance((points + r) @ b.rotation)))
        gap, normal = _distance(b, points[k] + r)
        point = points[k] if sign > 0 else points[k] - offset
        found.append(Near(gap, sign * normal, point))
    return min(found, key=lambda near: near.gap)


def _distance(pose: Pose, r: Floats) -> tuple[float, Floats]:
    """The distance of a place, from the centre of a body, from its surface; and its gradient."""
    q = pose.rotation.T @ r
    around = q + SLOPE * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
    values = pose.shape.distance(around)
    slope = pose.rotation @ (values[1:4] - values[4:7])
    length = float(np.linalg.norm(slope))
    return float(values[0]), slope / length if length > 0 else slope

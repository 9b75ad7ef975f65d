"""Sponges: layers at faces of the box whose viscosity rises, so that sound and eddies fade."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree
from mpilbm.core.quantity import LENGTH, VISCOSITY
from mpilbm.core.registry import Parameters, find, names
from mpilbm.model.case import Case
from mpilbm.model.findings import WARNING, Finding
from mpilbm.physics.boundaries import FACES, Face


class Sponge(Parameters):
    """A layer in which the viscosity rises smoothly from that of the fluid towards a face.

        nu(x) = nu + viscosity q^2,  q = max(0, 1 - d / thickness)

    d is the distance from the face. Where layers of several faces in `where` overlap, the largest q
    counts; the viscosities of several sponges are added. Sound of the wave number k decays in the
    layer as exp(-nu_L k^2 t / 2), on its way to the face and back, and eddies fade in front of the
    boundary. A closure adds its eddy viscosity.
    """

    where: tuple[Face, ...] = Field(
        min_length=1, description="faces of the box at which the layer lies", examples=[["x+"]]
    )
    thickness: Annotated[float, LENGTH] = Field(
        ge=1, description="depth of the layer from the face inwards", examples=[64]
    )
    viscosity: Annotated[float, VISCOSITY] = Field(
        1.0, gt=0, lt=10, description="what is added to the viscosity at the face", examples=[1.0]
    )

    @property
    def tree(self) -> Tree:
        """What is added to the viscosity, a formula of the coordinates and the size of the box."""
        depths = [self._depth(face) for face in self.where]
        return Formula(f"{self.viscosity!r}*max(0, {', '.join(depths)})**2").tree

    def _depth(self, face: str) -> str:
        """1 - d / thickness."""
        axis, side = face[0], face[1]
        depth = repr(self.thickness)
        inner = f"{depth} - {axis}" if side == "-" else f"{axis} - (n{axis} - {depth})"
        return f"({inner})/{depth}"

    def contains(self, points: NDArray[np.float64], size: Sequence[int]) -> NDArray[np.bool_]:
        """Whether points, (n, D) in cells, are in the layer of a box of this size."""
        found = np.zeros(len(points), bool)
        for face in self.where:
            axis = "xyz".index(face[0])
            x = points[:, axis]
            found |= (x if face[1] == "-" else size[axis] - x) < self.thickness
        return found

    def problems(self, case: Case) -> list[str]:
        """Faces that the box has not, layers without fluid in front, collisions without a rate."""
        found = []
        for face, count in Counter(self.where).items():
            axis, D = "xyz".index(face[0]), case.dimensions
            if axis >= D:
                found.append(f"where: found {face}; allowed in 2D: {', '.join(FACES[:4])}")
                continue
            if count > 1:
                found.append(f"where: found {face} {count} times; allowed: once; remove the others")
            both, n = self._opposite(face) in self.where, case.domain.size[axis]
            if self.thickness >= n / (1 + both):
                most = f"half of the box, which has {n} cells" if both else f"the box, {n} cells"
                found.append(
                    f"thickness: found {self.thickness:g} at {face}{' and its opposite' * both}; "
                    f"allowed: less than {most} along {face[0]}"
                )
        if not case.single_fluid:
            return [*found, "found with a [coupling]; allowed: one fluid; remove the sponge"]
        return found + list(_refused(case))

    def warnings(self, case: Case) -> list[Finding]:
        """Bodies that end in the layer, and faces at which the viscosity jumps.

        Bodies that pass through the face are walls.
        """
        found = []
        for face in self.where:
            other = self._opposite(face)
            if case.domain.periodic["xyz".index(face[0])] and other not in self.where:
                text = (
                    f"where: the box is periodic along {face[0]}, so that the viscosity jumps by "
                    f"{self.viscosity:g} at {face}; name {other} too, or remove {face}"
                )
                found.append(Finding(WARNING, "", text))
        for body in case.bodies:
            if body.shape is None or not self._ends_inside(case, *body.shape.bounds()):
                continue
            text = (
                f"where: the body '{body.label}' reaches into the sponge, whose viscosity changes "
                "the flow past it and the force on it; move the body, or make the sponge thinner"
            )
            found.append(Finding(WARNING, "", text))
        return found

    def _ends_inside(self, case: Case, lower: Sequence[float], upper: Sequence[float]) -> bool:
        """Whether a body with these corners ends in the layer of a face."""
        for face in self.where:
            axis = "xyz".index(face[0])
            low, high, n = lower[axis], upper[axis], case.domain.size[axis]
            end = low if face[1] == "-" else n - high  # its distance from the face
            if 0 < end < self.thickness:
                return True
        return False

    @staticmethod
    def _opposite(face: str) -> str:
        """The other face along the axis of a face."""
        return face[0] + ("+" if face[1] == "-" else "-")


def _refused(case: Case) -> Iterator[str]:
    collision = case.fluids[0].collision
    closure = collision.closure
    if not collision.local(case.lattice):
        on, kind = "", "collisions"
        usable = [name for name in names(kind) if find(kind, name).shear_rate]
        if collision.shear_rate is not None:
            on, kind = f" on {case.lattice.name}", "lattices"
            usable = [name for name in names(kind) if find(kind, name)().isotropy >= 4]
        yield (
            f"the viscosity of '{collision.name}'{on} cannot differ from cell to cell; {kind} "
            f"allowed with a sponge: {', '.join(usable)}"
        )
    elif closure is not None and closure.limits() is not None:
        yield (
            f"the closure '{closure.name}' determines the whole viscosity; allowed with a sponge: "
            "no closure, or one that adds an eddy viscosity"
        )

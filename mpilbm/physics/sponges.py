"""Sponges: layers at faces of the box whose viscosity rises, so that sound and eddies fade."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

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
        gt=0, description="depth of the layer from the face inwards", examples=[64]
    )
    viscosity: Annotated[float, VISCOSITY] = Field(
        1.0, gt=0, lt=10, description="what is added to the viscosity at the face", examples=[1.0]
    )

    def formula(self) -> str:
        """What is added to the viscosity, as a formula of the coordinates."""
        depths = [self._depth(face) for face in self.where]
        return f"{self.viscosity!r}*max(0, {', '.join(depths)})**2"

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
        for face in self.where:
            axis, D = "xyz".index(face[0]), case.dimensions
            if axis >= D:
                found.append(f"where: found {face}; allowed in 2D: {', '.join(FACES[:4])}")
            elif self.thickness >= case.domain.size[axis]:
                found.append(
                    f"thickness: found {self.thickness:g} at {face}; allowed: less than the box, "
                    f"{case.domain.size[axis]} cells along {face[0]}"
                )
        if not case.single_fluid:
            return [*found, "found with a [coupling]; allowed: one fluid; remove the sponge"]
        return found + list(_refused(case))

    def warnings(self, case: Case) -> list[Finding]:
        """Bodies that end in the layer; those that pass through the face are walls."""
        found = []
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
            reaches = low < self.thickness if face[1] == "-" else high > n - self.thickness
            if reaches and low > 0 and high < n:
                return True
        return False


def _refused(case: Case) -> Iterator[str]:
    collision = case.fluids[0].collision
    closure = collision.closure
    if collision.shear_rate is None:
        usable = [name for name in names("collisions") if find("collisions", name).shear_rate]
        yield (
            f"the viscosity of '{collision.name}' cannot differ from cell to cell; allowed with a "
            f"sponge: {', '.join(usable)}"
        )
    elif closure is not None and closure.limits() is not None:
        yield (
            f"the closure '{closure.name}' determines the whole viscosity; allowed with a sponge: "
            "no closure, or one that adds an eddy viscosity"
        )

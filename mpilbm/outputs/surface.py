"""Pressure, wall shear stress, y+ and force per area on the surfaces of bodies."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.core.registry import register
from mpilbm.outputs import Context, Writer
from mpilbm.outputs.core import body_problems, chosen_bodies, parts_problems
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.facet_files import FIELDS
from mpilbm.outputs.linked_surface import LinkedSurfaceWriter
from mpilbm.outputs.moving_surface import FIELD, MovingSurfaceWriter
from mpilbm.physics.motions import moving
from mpilbm.solids.shapes.mesh import Mesh
from mpilbm.solver.fields.point_fields import point_bytes, point_roles

FACET_BYTES = 160  # points, connectivity and the number of the body


@register("outputs", "surface")
class Surface(Scheduled):
    """Values on the surfaces of bodies as `surface_<label>_<step>.vtkhdf`, VTKHDF PolyData.

        pressure         cs2 (rho - 1); on a body across the faces of a pressure_jump, that of the
                         unfolded flow around the body in one piece
        shear            tau = t - (t . n) n with the viscous force per area t
        shear_magnitude  |tau|
        y_plus           sqrt(|tau| / rho) d / nu with the distance d of the nearest cells
        force            force per area; its integral is that of `body_forces`

    n is the normal into the fluid. Values belong to triangles of a mesh (`on = "mesh"`, divided
    until their sides are at most 2 cells) or to the faces between fluid and solid cells
    (`on = "cells"`), in 2D to lines. They are weighted means over the cells next to the body within
    2 cells, of the momentum exchange of their links with the body and of their pressure; nan where
    there are no such cells. Both are means of the steps before and after, as in `body_forces`. With
    [units] all values are in SI. See outputs/facets.py.

    Of moving bodies only the pressure at the step is known. The facets move with the body:
    triangles of a mesh, or those of a net over another shape. The pressure is extrapolated linearly
    from points 2 cells and 1 cell above the facet. `surface_<label>.vtkhdf.series` is the time
    series of all files.
    """

    body: tuple[str, ...] = Field(
        (), description="labels of the bodies; without it: all", examples=[["car"]]
    )
    on: Literal["mesh", "cells"] | None = Field(
        None, description="triangles or faces of cells; without it: mesh if the body is one"
    )
    fields: tuple[str, ...] = Field(
        tuple(FIELDS),
        description=f"{', '.join(FIELDS)}; of moving bodies {FIELD}",
        examples=[["pressure", "shear"]],
    )

    files: ClassVar[tuple[str, ...]] = (
        "surface_<label>_<step>.vtkhdf",
        "surface_<label>.vtkhdf.series",
    )
    free: ClassVar[tuple[str, ...]] = ("fields",)

    def moving(self, case: Case) -> tuple[int, ...]:
        """The numbers of the bodies that move, among the named ones or all."""
        return tuple(k for k in chosen_bodies(case, self.body) if k in moving(case))

    def bodies(self, case: Case) -> tuple[int, ...]:
        """The numbers of the bodies at rest, which have forces, among the named ones or all."""
        return tuple(k for k in chosen_bodies(case, self.body) if k not in moving(case))

    def ahead(self, case: Case) -> bool:
        """If the bodies are at rest."""
        return bool(self.bodies(case))

    @property
    def splits(self) -> bool:
        """The viscous part gives the shear."""
        return True

    @property
    def by_cell(self) -> bool:
        """Facets have means over cells."""
        return True

    def problems(self, case: Case) -> list[str]:
        """Unknown labels and fields, faces of cells that do not exist, and no mesh."""
        found = super().problems(case) + body_problems(case, self.body)
        found += parts_problems(case, self.bodies(case), "body")
        choice = ", ".join(FIELDS)
        wrong = [name for name in self.fields if name not in FIELDS]
        found += [f"fields: found '{name}'; allowed: {choice}" for name in wrong]
        if not self.fields:
            found.append(f"fields: found none; allowed: {choice}")
        if self.moving(case):
            found += self._moving_problems(case)
        for number in self.bodies(case):
            body = f"on: body '{case.bodies[number].label}'"
            mesh = isinstance(case.bodies[number].shape, Mesh)
            if self.on == "mesh" and not mesh:
                fix = 'set on = "cells", or name the bodies with a mesh as `body`'
                found.append(f"{body} is not a mesh; {fix}")
            elif case.lattice.staggered and not (mesh and self.on != "cells"):
                lacks = f"which the lattice {case.lattice.name} does not have"
                found.append(f"{body} would have faces of cells, {lacks}; use a mesh")
        return found

    def _moving_problems(self, case: Case) -> list[str]:
        """What is not known on moving bodies, and bodies at rest in the same file."""
        label, found = case.bodies[self.moving(case)[0]].label, []
        if others := [case.bodies[k].label for k in self.bodies(case)]:
            found.append(
                f"body: '{label}' moves and '{others[0]}' does not; name bodies that move in one "
                "output, and the others in another one"
            )
        wrong = [name for name in self.fields if name in FIELDS and name != FIELD]
        if wrong and "fields" in self.model_fields_set:
            found.append(
                f"fields: '{wrong[0]}' is not known on body '{label}', which moves through cells "
                f"that it fills in part; allowed: {FIELD}"
            )
        if self.on and not all(self.on_mesh(case, number) for number in self.moving(case)):
            has = "the triangles of its mesh, or a net over another shape"
            found.append(f"on: body '{label}' moves, its facets are {has}; remove on")
        return found

    def on_mesh(self, case: Case, number: int) -> bool:
        """Whether a body has triangles in the file."""
        return self.on != "cells" and isinstance(case.bodies[number].shape, Mesh)

    def disk_bytes(self, case: Case, times: int) -> int:
        """For twice the area of the box around each body, or of a mask a face of each cell."""
        each = FACET_BYTES + 8 * sum(FIELDS.get(name, 0) for name in self.fields)
        bodies = chosen_bodies(case, self.body)
        return times * each * sum(_faces(case, number) for number in bodies)

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernel of the pressure in cells near bodies that move."""
        return point_roles(case, (FIELD,)) if self.moving(case) else ()

    def device_bytes(self, case: Case, planes: int) -> int:
        """The cells near bodies that move, a few of each facet."""
        cells = 4 * sum(_faces(case, number) for number in self.moving(case))
        return point_bytes(case, (FIELD,), cells) if cells else 0

    def open(self, context: Context) -> Writer:
        """Gathers the cells next to bodies at rest on rank 0; collective."""
        case, stem = context.case, self.stem(context.case)
        if numbers := self.moving(case):
            return MovingSurfaceWriter(context, stem, numbers)
        on_mesh = {number: self.on_mesh(case, number) for number in self.bodies(case)}
        return LinkedSurfaceWriter(context, stem, on_mesh, self.fields)

    def stem(self, case: Case) -> str:
        """The first part of the file names."""
        return f"{self.name}_{self.label_in(case)}"


def _faces(case: Case, number: int) -> int:
    """Estimate of the number of facets of a body."""
    shape, size = case.bodies[number].shape, np.array(case.domain.size, float)
    if shape is None:
        return int(size.prod())
    lower, upper = (np.array(bound, float) for bound in shape.bounds())
    sides = np.clip(np.minimum(upper, size) - np.maximum(lower, 0), 1, size)
    return int(4 * (sides.prod() / sides).sum())

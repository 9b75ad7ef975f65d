"""Couplings between fluids: fields that neighbouring cells read, and the collisions that use them.

To add a coupling, write one file with a class derived from `Coupling` and `@register("couplings",
name)`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from mpilbm.core.registry import Parameters, find, names
from mpilbm.core.units import counted
from mpilbm.model.case import Case, Fluid
from mpilbm.model.cell import CoupledCell
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.physics.forcing import Forcing


class Coupling(Parameters):
    """The interaction of the fluids of a box.

    A step first computes `fields` in every cell from the incoming populations. Then `collide`
    computes the collision of each fluid; it may use the fields of neighbouring cells. In solid
    cells and beyond faces, `wall` defines these fields. mpilbm/model/cell.py describes `cell`.
    """

    fewest: ClassVar[int] = 1  # number of fluids
    most: ClassVar[int | None] = None  # None: any number

    def structure(self, case: Case) -> dict[str, Any]:
        """The properties that determine the kernel text, in addition to those of the fluids."""
        raise NotImplementedError

    def neighbour_fields(self, case: Case) -> tuple[str, ...]:
        """Names of the fields that neighbouring cells read."""
        raise NotImplementedError

    def local_fields(self, case: Case) -> tuple[str, ...]:
        """Names of further fields, which the collision reads in the cell itself only."""
        return ()

    def numbers(self, case: Case) -> dict[str, float]:
        """Arguments of the kernels, {name: value}."""
        return {}

    def forcing(self, fluid: Fluid) -> Forcing | None:
        """The Forcing of a fluid; its scheme also applies the force of the coupling."""
        return fluid.force

    def fields(self, cell: CoupledCell) -> dict[str, Expression]:
        """All fields in `neighbour_fields` and `local_fields`, {name: expression}."""
        raise NotImplementedError

    def collide(self, cell: CoupledCell, k: int) -> list[Expression]:
        """The Q post-collision populations of fluid k."""
        raise NotImplementedError

    def initial_populations(self, cell: CoupledCell, k: int) -> list[Expression]:
        """The Q initial post-collision populations of fluid k, from which the first step streams.

        The cell holds equilibrium populations. Fluids are initialised in their order: fluids before
        k already have their initial populations.
        """
        raise NotImplementedError

    def mixture(self, cell: CoupledCell) -> tuple[Expression, Expression, Vector]:
        """Stored density, rho and momentum (D) of the mixture, after the collision.

        Half of the force is subtracted from the momentum.
        """
        raise NotImplementedError

    def outputs(self, case: Case) -> tuple[str, ...]:
        """Names of further fields in snapshots, in addition to rho and u."""
        return ()

    def output(self, cell: CoupledCell) -> list[Expression]:
        """Expressions of the fields in `outputs`, from the post-collision populations."""
        return []

    def offsets(self, case: Case) -> tuple[bool, ...]:
        """Whether the populations of each fluid are stored as deviations from rho = 1."""
        return (case.precision.offset,) * len(case.fluids)

    def rest(self, case: Case) -> float:
        """The density rho of the mixture minus its stored density."""
        return float(sum(self.offsets(case)))

    def masses(self, case: Case) -> dict[str, float]:
        """The columns of the monitor for the masses of several fluids, {name: difference}.

        The difference per cell between the mass and the sum of the stored densities in `mass`.
        """
        several = zip(case.fluids, self.offsets(case), strict=True)
        return {f"mass_{fluid.label}": float(out) for fluid, out in several if fluid.label}

    def mass(self, cell: CoupledCell) -> list[Expression]:
        """Expressions of the stored densities whose sums over the box give `masses`, in order."""
        return [cell.density(k) for k in range(cell.count)]

    def jumps(self, case: Case) -> tuple[float | None, ...]:
        """The difference of each field of `order_parameters` across an interface.

        None: the range of the field in the box is used; such a field must be positive.
        """
        return ()

    def order_parameters(self, cell: CoupledCell) -> list[Expression]:
        """Expressions of the fields that distinguish the phases, after the collision."""
        return []

    def wall(self, case: Case, wetting: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        """The `neighbour_fields` in solid cells and beyond faces, {name: (scale, sum)}.

        The value in a solid cell is scale * (mean over the adjacent fluid cells) + sum. `wetting`
        is the parameter of the boundary.
        """
        raise NotImplementedError

    def warnings(self, case: Case) -> list[str]:
        """Warnings: parameters that are allowed but probably a mistake."""
        return []

    def problems(self, case: Case) -> list[str]:
        """Errors: fluids, lattices, formats and walls that no coupling, or this one, supports."""
        return [*self._of_fluids(case), *self._of_solids(case)]

    def _of_fluids(self, case: Case) -> list[str]:
        """Errors of the number of fluids, the lattice, the storage and the initial fields."""
        found, count = [], len(case.fluids)
        if count < self.fewest or (self.most and count > self.most):
            allowed = f"{self.fewest} to {self.most}" if self.most else f"{self.fewest} or more"
            allowed = str(self.fewest) if self.fewest == self.most else allowed
            found.append(f"{self.name}: found {counted(count, 'fluid')}; allowed: {allowed}")
        if case.lattice.isotropy < 4:
            found.append(
                f"{self.name} needs a lattice isotropic to order 4; {case.lattice.name} "
                "is not; use another lattice"
            )
        if "float16" in case.formats.names:
            found.append(
                f"{self.name} cannot store populations in 16 bits, because they are not "
                'small deviations; set precision.storage = "float32"'
            )
        for fluid in case.fluids:
            if fluid.initial.iterate or fluid.initial.non_equilibrium:
                found.append(
                    f"{fluid.initial.where}: iterate and non_equilibrium are not defined "
                    f"with {self.name}; remove them"
                )
        return found

    def _of_solids(self, case: Case) -> list[str]:
        """Errors of boundaries, and of forces on bodies."""
        found = []
        for key, boundary in solids(case):
            if _reads_cell(boundary) or getattr(boundary, "velocity", None) is not None:
                kinds = {name: find("boundaries", name) for name in names("boundaries")}
                allowed = ", ".join(name for name, one in kinds.items() if not _reads_cell(one))
                found.append(
                    f"{key}: found '{boundary.name}' or a velocity, but {self.name} needs "
                    f"walls at rest; allowed: {allowed}, without velocity"
                )
        if case.needs.weighed:
            found.append(
                f"forces on bodies are not computed with {self.name}, because they do not "
                "include the wetting forces; remove the output body_forces"
            )
        return found


def _reads_cell(boundary: Boundary | type[Boundary]) -> bool:
    """Whether a boundary (object or class) reads more than outgoing populations."""
    return boundary.declares.reads is Reads.CELL


def solids(case: Case) -> list[tuple[str, Boundary]]:
    """(key path, boundary) of the boundaries of all faces and bodies."""
    faces = [(f"boundary.{index}", each) for index, each in enumerate(case.boundaries)]
    return faces + [(f"body.{body.label}.boundary", body.boundary) for body in case.bodies]


def fluid_names(case: Case) -> list[str]:
    """The labels of the fluids; "fluid" if there is only one."""
    return [fluid.label or "fluid" for fluid in case.fluids]

"""Couplings between fluids: fields that neighbouring cells read, and the collisions that use them.

Imports only the other folders of `physics`, `formulas`, `registry` and lower layers. To add a
coupling, write one file with a class derived from `Coupling` and `@register("couplings", name)`.
"""

from typing import ClassVar

from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.registry import Parameters, find, names


class Coupling(Parameters):
    """The interaction of the fluids of a box.

    A step first computes `fields` in every cell, from the incoming populations; then each fluid
    collides as `collide` defines, which may use the fields of neighbouring cells. In solid cells
    and beyond faces `wall` defines these fields. A subclass is all that another coupling needs.
    `cell` provides:

    lattice, cs2, axes, count     `count` is the number of fluids
    density(k), rho(k)            density of fluid k, the first as it is stored
    momentum(k)                   sum_i c_i f_i
    external_force(k)             the force on fluid k from the case, D components
    half                          1 where half of a force is part of the velocity of the collision
    here(name), slope(name)       a field in the cell; sum_i w_i c_i field(x + c_i) / cs2
    laplacian(name)               2 sum_i w_i (field(x + c_i) - field(x)) / cs2
    number(name)                  one of `numbers`
    let(name, expression)         defines a named value
    collided(k, F, u)             f* under a force F; at u, or at the fluid's own velocity
    relaxed(k, feq, rates, u, F)  f* of a fluid that relaxes towards feq
    initial(k, F)                 f* in equilibrium at rho(k), momentum(k) under a force F
    """

    fewest: ClassVar[int] = 1  # number of fluids
    most: ClassVar[int | None] = None  # None: any number

    def structure(self, case) -> dict:
        """What changes the kernel text, in addition to the fluids."""
        raise NotImplementedError

    def neighbour_fields(self, case) -> tuple[str, ...]:
        """Names of the fields that neighbouring cells read."""
        raise NotImplementedError

    def local_fields(self, case) -> tuple[str, ...]:
        """Names of further fields, which only the cell itself reads when its fluids collide."""
        return ()

    def numbers(self, case) -> dict[str, float]:
        """Arguments of the kernels by name."""
        return {}

    def forcing(self, fluid):
        """The force of a fluid, with the scheme by which the coupling also acts on it."""
        return fluid.force

    def fields(self, cell) -> dict:
        """{name: expression} of all fields in `neighbour_fields` and `local_fields`."""
        raise NotImplementedError

    def collide(self, cell, k: int) -> list:
        """The Q post-collision populations of fluid k."""
        raise NotImplementedError

    def initial_populations(self, cell, k: int) -> list:
        """The Q post-collision populations of fluid k of the step before the first one.

        The cell holds equilibrium populations. Fluids are initialised in their order: those before
        k already have their initial populations.
        """
        raise NotImplementedError

    def mixture(self, cell) -> tuple:
        """density, rho and momentum (D) of all fluids; half of the force is subtracted."""
        raise NotImplementedError

    def outputs(self, case) -> tuple[str, ...]:
        """Names of further fields in snapshots, in addition to rho and u."""
        return ()

    def output(self, cell) -> list:
        """Expressions of these fields, from the post-collision populations."""
        return []

    def offsets(self, case) -> tuple[bool, ...]:
        """Whether the populations of each fluid are stored as deviations from rho = 1."""
        return (case.precision.offset,) * len(case.fluids)

    def rest(self, case) -> float:
        """The difference between the density rho of the mixture and its stored density."""
        return float(sum(self.offsets(case)))

    def masses(self, case) -> dict[str, float]:
        """Columns of the monitor: the mass of each fluid if there are several.

        The values are the differences per cell between these masses and the sums of `mass`.
        """
        several = zip(case.fluids, self.offsets(case), strict=True)
        return {f"mass_{fluid.label}": float(out) for fluid, out in several if fluid.label}

    def mass(self, cell) -> list:
        """Expressions of the stored densities that add up to `masses`."""
        return [cell.density(k) for k in range(cell.count)]

    def jumps(self, case) -> tuple[float | None, ...]:
        """The difference of each field of `order_parameters` across an interface.

        None: use the range of the field in the box; such a field is positive.
        """
        return ()

    def order_parameters(self, cell) -> list:
        """Expressions of the fields that distinguish the phases, after the collision."""
        return []

    def wall(self, case, wetting: dict) -> dict[str, tuple[float, float]]:
        """{name: (scale, sum)} of all `neighbour_fields` fields in solid cells.

        A field is scale * (mean over the fluid cells around) + sum. `wetting` is that of the
        boundary.
        """
        raise NotImplementedError

    def warnings(self, case) -> list[str]:
        """Warnings: parameters that are allowed but probably a mistake."""
        return []

    def problems(self, case) -> list[str]:
        """Errors that all couplings have in common."""
        return [*self._of_fluids(case), *self._of_solids(case)]

    def _of_fluids(self, case) -> list[str]:
        found, count = [], len(case.fluids)
        if count < self.fewest or (self.most and count > self.most):
            allowed = f"{self.fewest} to {self.most}" if self.most else f"{self.fewest} or more"
            found.append(f"{self.name} couples {allowed} fluids, found {count}")
        if case.lattice.isotropy < 4:
            found.append(f"{self.name} needs a lattice isotropic to order 4; {case.lattice.name} "
                         "is not; use another lattice")  # fmt: skip
        if not (case.layout.populations and case.layout.dense):
            found.append(f"{self.name} is not defined in the layout '{case.layout.name}'; "
                         "allowed: ab, aa, esopull")  # fmt: skip
        if case.precision.storage == "float16":
            found.append(f"{self.name} stores no small deviations, which 16 bits require; set "
                         'precision.storage = "float32"')  # fmt: skip
        for fluid in case.fluids:
            if fluid.initial.iterate or fluid.initial.non_equilibrium:
                found.append(f"{fluid.initial.where}: iterate and non_equilibrium are not defined "
                             f"with {self.name}; remove them")  # fmt: skip
        return found

    def _of_solids(self, case) -> list[str]:
        found = []
        for key, boundary in solids(case):
            if _reads_cell(boundary) or getattr(boundary, "velocity", None) is not None:
                kinds = {name: find("boundaries", name) for name in names("boundaries")}
                allowed = ", ".join(name for name, one in kinds.items() if not _reads_cell(one))
                found.append(f"{key}: {self.name} needs walls at rest that read populations "
                             f"only, found a moving one or '{boundary.name}'; allowed: {allowed}, "
                             "without velocity")  # fmt: skip
        if case.weighed:
            found.append(f"forces on bodies are not computed with {self.name}, whose walls also "
                         "attract; remove the output body_forces")  # fmt: skip
        return found


def _reads_cell(boundary) -> bool:
    """Whether a boundary, or a class of it, reads more than outgoing populations."""
    return boundary.declares.reads is Reads.CELL


def solids(case) -> list[tuple[str, Boundary]]:
    """(key path, boundary) of the boundaries of all faces and bodies."""
    faces = [(f"boundary.{index}", each) for index, each in enumerate(case.boundaries)]
    return faces + [(f"body.{body.label}.boundary", body.boundary) for body in case.bodies]


def fluid_names(case) -> list[str]:
    """The labels of the fluids; "fluid" if there is only one."""
    return [fluid.label or "fluid" for fluid in case.fluids]

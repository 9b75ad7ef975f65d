"""Couplings between fluids: what cells show their neighbours, and how each fluid then collides."""

from typing import ClassVar

from mpilbm.physics.boundary_capabilities import Reads
from mpilbm.registry import Parameters, find, names


class Coupling(Parameters):
    """How the fluids of a box act on each other.

    A step first computes `show` in every cell, from what streams in; then each fluid collides as
    `leaving` says, which may look at the fields that the neighbours show. In solid cells and beyond
    faces these are what `wall` makes of them. A subclass is all that another coupling takes; what
    `cell` offers:

    lattice, cs2, axes, count     `count` is the number of fluids
    density(k), rho(k)            of fluid k, the first as it is stored
    momentum(k)                   sum_i c_i f_i
    push(k)                       the force on fluid k that the case gives, D components
    half                          1 where half of a force belongs to the velocity that collides
    here(name), slope(name)       a field in the cell; sum_i w_i c_i field(x + c_i) / cs2
    laplacian(name)               2 sum_i w_i (field(x + c_i) - field(x)) / cs2
    number(name)                  one of `numbers`
    let(name, expression)         a name for a value
    collided(k, F, u)             what leaves under a force; at u, or at the fluid's own velocity
    relaxed(k, feq, rates, u, F)  what leaves of a fluid that relaxes towards feq
    initial(k, F)                 what leaves at rho(k), momentum(k) under a force, in equilibrium
    """

    fewest: ClassVar[int] = 1  # fluids
    most: ClassVar[int | None] = None

    def structure(self, case) -> dict:
        """What shapes the kernel text, beside the fluids."""
        raise NotImplementedError

    def shown(self, case) -> tuple[str, ...]:
        """Names of the fields that neighbours read."""
        raise NotImplementedError

    def kept(self, case) -> tuple[str, ...]:
        """Names of those that only the cell itself reads, once the fluids have collided."""
        return ()

    def numbers(self, case) -> dict[str, float]:
        """Arguments of the kernels."""
        return {}

    def forcing(self, fluid):
        """The force of a fluid, by which the coupling acts too."""
        return fluid.force

    def show(self, cell) -> dict:
        """{name: expression} of all `shown` and `kept`."""
        raise NotImplementedError

    def leaving(self, cell, k: int) -> list:
        """The Q populations of fluid k that leave."""
        raise NotImplementedError

    def begin(self, cell, k: int) -> list:
        """What left before the first step, from populations in equilibrium.

        Fluids begin in turn: what is before k in the list has begun.
        """
        raise NotImplementedError

    def mixture(self, cell) -> tuple:
        """density, rho and momentum (D) of all fluids, of what left; half of the force is off."""
        raise NotImplementedError

    def outputs(self, case) -> tuple[str, ...]:
        """Names of fields of its own in snapshots, beside rho and u."""
        return ()

    def output(self, cell) -> dict:
        """{name: expression} of these, of what left."""
        return {}

    def offsets(self, case) -> tuple[bool, ...]:
        """Of each fluid whether its populations are stored as deviations from those at rho = 1."""
        return (case.precision.offset,) * len(case.fluids)

    def rest(self, case) -> float:
        """What `mixture` leaves out of the density, as it is stored."""
        return float(sum(self.offsets(case)))

    def masses(self, case) -> dict[str, float]:
        """Columns of the monitor, the mass of each of several fluids; what `mass` leaves out."""
        several = zip(case.fluids, self.offsets(case), strict=True)
        return {f"mass_{fluid.label}": float(out) for fluid, out in several if fluid.label}

    def mass(self, cell) -> list:
        """Expressions of these."""
        return [cell.density(k) for k in range(cell.count)]

    def jumps(self, case) -> tuple[float | None, ...]:
        """By how much each field of `order` differs across an interface.

        None: by its range in the box; such a field is positive.
        """
        return ()

    def order(self, cell) -> list:
        """Expressions of fields that tell phases apart, of what left."""
        return []

    def wall(self, case, wetting: dict) -> dict[str, tuple[float, float]]:
        """{name: (scale, sum)} of all `shown`: scale * mean of the fluid around + sum."""
        raise NotImplementedError

    def warnings(self, case) -> list[str]:
        """What is allowed but not wise."""
        return []

    def problems(self, case) -> list[str]:
        """What is refused with any coupling."""
        return [*self._of_fluids(case), *self._of_solids(case)]

    def _of_fluids(self, case) -> list[str]:
        found, count = [], len(case.fluids)
        if count < self.fewest or (self.most and count > self.most):
            allowed = f"{self.fewest} to {self.most}" if self.most else f"{self.fewest} or more"
            found.append(f"{self.name} couples {allowed} fluids, found {count}")
        if case.lattice.isotropy < 4:
            found.append(f"{self.name} needs a lattice isotropic to order 4; {case.lattice.name} "
                         "is not; choose another lattice")  # fmt: skip
        if not (case.layout.populations and case.layout.dense):
            found.append(f"{self.name} is not defined in the layout '{case.layout.name}'; "
                         "allowed: ab, aa, esopull")  # fmt: skip
        if case.precision.storage == "float16":
            found.append(f"{self.name} has no small deviations that 16 bits could hold; take "
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
                found.append(f"{key}: {self.name} takes walls at rest that read populations "
                             f"only, not a moving one or '{boundary.name}'; allowed: {allowed}, "
                             "without velocity")  # fmt: skip
        if case.weighed:
            found.append("forces on bodies are not known here: a wall also attracts; remove the "
                         "output body_forces")  # fmt: skip
        return found


def _reads_cell(boundary) -> bool:
    """Whether a boundary, or a class of it, reads more than outgoing populations."""
    return boundary.declares.reads is Reads.CELL


def solids(case) -> list[tuple[str, object]]:
    """(key path, boundary) of all faces' and bodies' boundaries."""
    faces = [(f"boundary.{index}", each) for index, each in enumerate(case.boundaries)]
    return faces + [(f"body.{body.label}.boundary", body.boundary) for body in case.bodies]


def fluid_names(case) -> list[str]:
    """The labels of the fluids; "fluid" where there is but one."""
    return [fluid.label or "fluid" for fluid in case.fluids]

"""The equations of one fluid as symbols: rho and u of populations, collision, initial state."""

from dataclasses import dataclass

from mpilbm.collisions import Collision
from mpilbm.equilibria import dot
from mpilbm.forcing import Forcing
from mpilbm.lattices import AXES, Lattice


@dataclass(frozen=True)
class Model:
    """A lattice with a collision, a force (or None) and the kind of storage.

    With `offset` populations are stored as f_i - feq_i(rho = 1, u = 0); `density` is what the
    stored ones add up to: rho - 1, or rho without offset. Populations, densities and momenta are
    multiples of 1 / `unit`; the equations are the same in every unit of mass.
    """

    lattice: Lattice
    collision: Collision
    forcing: Forcing | None
    offset: bool
    unit: int = 1

    def structure(self) -> dict:
        """All that shapes the kernel text, as plain data."""
        return {
            "lattice": self.lattice.name,
            "collision": self.collision.structure(),
            "forcing": self.forcing and self.forcing.structure(),
            "offset": self.offset,
        }

    @property
    def axes(self) -> str:
        """The coordinates: "xy" or "xyz"."""
        return AXES[: self.lattice.D]

    def force(self, kernel) -> list:
        """The force per volume, D arguments of the kernel (zeros without a force)."""
        if self.forcing is None:
            return [0] * self.lattice.D
        return [self.unit * kernel.argument(f"force_{a}", "real") for a in self.axes]

    def rest(self, density):
        """rho from what the stored populations add up to."""
        return self.unit + density if self.offset else density

    def macroscopic(self, kernel, f, half: int):
        """density, rho, u of Q populations; u = (sum_i c_i f_i + half F/2) / rho.

        `half` is +1 for what streams in and -1 for what leaves the cell.
        """
        density = kernel.let("density", sum(f))
        rho = kernel.let("rho", self.rest(density))
        momentum = [
            dot([c[a] for c in self.lattice.c], f) + half * F / 2
            for a, F in enumerate(self.force(kernel))
        ]
        u = self.collision.velocity(momentum, rho)
        return density, rho, [kernel.let(f"u_{a}", v) for a, v in zip(self.axes, u, strict=True)]

    def source(self, kernel, u):
        """The force term F_i, or None."""
        if self.forcing is None:
            return None
        return self.forcing.source(self.lattice, u, self.force(kernel))

    def collide(self, kernel, f, rates: dict) -> list:
        """The Q populations that leave a cell, from those that stream in."""
        density, rho, u = self.macroscopic(kernel, f, +1)
        source = self.source(kernel, u)
        return self.collision.collide(self.lattice, f, density, rho, u, source, rates, kernel.let)

    def initial(self, kernel, density, u) -> list:
        """What leaves a cell at rho and u in equilibrium: feq_i + F_i / 2."""
        rho = kernel.let("rho", self.rest(density))
        feq = self.collision.feq(self.lattice, density, rho, u)
        source = self.source(kernel, u)
        return feq if source is None else [a + F / 2 for a, F in zip(feq, source, strict=True)]

"""The pseudopotential model: fluids attract or repel each other and themselves."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Field, Tag

from mpilbm.core.formulas.parser import FormulaError
from mpilbm.core.registry import find, make, names, register
from mpilbm.model.case import Case, Fluid
from mpilbm.model.cell import CoupledCell
from mpilbm.model.expressions import Expression, Vector
from mpilbm.physics.algebra import dot
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling, fluid_names, solids
from mpilbm.physics.couplings.phases import Attraction, phase_warnings
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice


def _number_or_matrix(value: object) -> str:
    return "<matrix>" if isinstance(value, list | tuple) else "<number>"


Matrix = Annotated[
    Annotated[float, Tag("<number>")] | Annotated[tuple[tuple[float, ...], ...], Tag("<matrix>")],
    Discriminator(_number_or_matrix),
]


@register("couplings", "shan_chen")
class ShanChen(Coupling):
    """F_k = -psi_k(x) sum_l G_kl sum_i w_i psi_l(x + c_i) c_i, psi_k = psi(rho_k).

    F_k is the force on fluid k. G is a number for one fluid, or for two fluids that do not act on
    themselves; otherwise it is a matrix. Positive values repel (two components), negative values
    attract (phase change of one component). `psi` is a formula, such as "1-exp(-rho)", "rho" or
    "4*exp(-200/rho)". The pressure is p = cs2 (sum_k rho_k + sum_kl G_kl psi_k psi_l / 2). A single
    fluid collides with its own velocity, several fluids with the common velocity

        u = sum_k omega_k j_k / sum_k omega_k rho_k,    j_k = sum_i c_i f_k,i (guo: + F_k / 2)

    where omega_k is the rate at which the collision of fluid k relaxes momentum: 1 / tau_k for bgk.
    Outputs have rho u = sum_k (sum_i c_i f_k,i + F_k / 2). With `force` = "guo" the densities next
    to an interface are those of mechanical equilibrium, independent of tau. With "exact_difference"
    they are not (at G = -5 the error of the vapour density is 30 %). In solids psi_k is psi of the
    densities in `wetting`; without `wetting` it is the mean of psi_k in the adjacent fluid cells,
    which is neutral. There is a contact angle if psi in the wall (two fluids: psi_1 - psi_2) lies
    between its values in the two phases. Each phase contains some of the other fluid, and its
    viscosity is nu = sum_k rho_k nu_k / sum_k rho_k. [Shan & Chen 1993, Phys. Rev. E 47, 1815;
    force by guo for several fluids: Porter, Coon, Kang, Moulton & Carey 2012, Phys. Rev. E 86,
    036701; Januszewski & Kostur 2014, eq. 10 with the signs above]
    """

    G: Matrix = Field(description="strength of the interaction; > 0 repels", examples=[2.4])
    psi: str = Field("1-exp(-rho)", description="the pseudopotential, a formula of rho")
    force: str = Field("guo", description="forcing scheme: guo or exact_difference")

    @property
    def attraction(self) -> Attraction:
        """G and psi."""
        return Attraction(self.G, self.psi)

    def structure(self, case: Case) -> dict[str, Any]:
        """The fluids that act on each other, the form of psi and the forcing scheme."""
        acts = (self.attraction.matrix(len(case.fluids)) != 0).tolist()
        kind = {"name": self.name, "force": self.force}
        return kind | {"acts": acts, "psi": repr(self.attraction.potential.tree)}

    def neighbour_fields(self, case: Case) -> tuple[str, ...]:
        """psi of each fluid."""
        return tuple(f"potential_{k}" for k in range(len(case.fluids)))

    def local_fields(self, case: Case) -> tuple[str, ...]:
        """The common velocity; with a force inside the collision also 1 / sum omega_k rho_k."""
        if len(case.fluids) == 1:
            return ()
        weight = ("weight",) if find("forcing", self.force).inside else ()
        return (*(f"common_{axis}" for axis in "xyz"[: case.lattice.D]), *weight)

    def numbers(self, case: Case) -> dict[str, float]:
        """G, the numbers of psi, and the relaxation rates of momentum."""
        G = self.attraction.matrix(len(case.fluids))
        found = {
            f"G_{k}_{n}": float(G[k, n]) for k, n in np.ndindex(G.shape)
        } | self.attraction.potential.numbers
        if len(case.fluids) > 1:
            rates = enumerate(
                momentum_rate(fluid.collision, fluid.viscosity, case.lattice)
                for fluid in case.fluids
            )
            found |= {f"momentum_rate_{k}": rate for k, rate in rates}
        return found

    def forcing(self, fluid: Fluid) -> Forcing:
        """The force of the case, or a zero force with the scheme `force`."""
        return fluid.force or make("forcing", {"name": self.force, "value": (0.0, 0.0)})

    def fields(self, cell: CoupledCell) -> dict[str, Expression]:
        """psi_k, and with several fluids the common velocity without the interaction forces."""
        found = {f"potential_{k}": self._psi(cell, k) for k in range(cell.count)}
        if cell.count == 1:
            return found
        rates = [cell.number(f"momentum_rate_{k}") for k in range(cell.count)]
        weight = cell.let("weight", 1 / dot(rates, [cell.rho(k) for k in range(cell.count)]))
        for a, axis in enumerate(cell.axes):
            j = [
                cell.momentum(k)[a] + cell.half * cell.external_force(k)[a] / 2
                for k in range(cell.count)
            ]
            found[f"common_{axis}"] = dot(rates, j) * weight
        return found | ({"weight": weight} if cell.half else {})

    def _psi(self, cell: CoupledCell, k: int) -> Expression:
        """psi of fluid k."""
        return self.attraction.potential.expression(cell.rho(k), cell.number)

    def between(self, cell: CoupledCell, k: int) -> list[Expression]:
        """The interaction force F_k, D components."""
        acting = np.flatnonzero(self.attraction.matrix(cell.count)[k]).tolist()
        slopes = {n: cell.slope(f"potential_{n}") for n in acting}
        psi, cs2 = cell.here(f"potential_{k}"), cell.cs2
        return [
            -cs2
            * psi
            * dot([cell.number(f"G_{k}_{n}") for n in acting], [slopes[n][a] for n in acting])
            for a in range(len(cell.axes))
        ]

    def force_on(self, cell: CoupledCell, k: int) -> list[Expression]:
        """The total force on fluid k."""
        whole = zip(cell.axes, self.between(cell, k), cell.external_force(k), strict=True)
        return [cell.let(f"F_{axis}_{k}", F + given) for axis, F, given in whole]

    def collide(self, cell: CoupledCell, k: int) -> list[Expression]:
        """The post-collision populations with the total force and the common velocity."""
        F = self.force_on(cell, k)
        if cell.count == 1:
            return cell.collided(k, F)
        u = [cell.here(f"common_{axis}") for axis in cell.axes]
        if cell.half:
            rates = [cell.number(f"momentum_rate_{n}") for n in range(cell.count)]
            forces = [self.between(cell, n) for n in range(cell.count)]
            half = [dot(rates, [F[a] for F in forces]) / 2 for a in range(len(u))]
            u = [v + cell.here("weight") * h for v, h in zip(u, half, strict=True)]
        u = [cell.let(f"common_u_{axis}", v) for axis, v in zip(cell.axes, u, strict=True)]
        return cell.collided(k, F, u)

    def initial_populations(self, cell: CoupledCell, k: int) -> list[Expression]:
        """Equilibrium with the total force; outputs subtract half of it from the momentum."""
        return cell.initial(k, self.force_on(cell, k))

    def mixture(self, cell: CoupledCell) -> tuple[Expression, Expression, Vector]:
        """Stored density, rho and momentum, summed over the fluids."""
        fluids = range(cell.count)
        forces = [self.force_on(cell, k) for k in fluids]
        momentum = [
            sum(cell.momentum(k)[a] - forces[k][a] / 2 for k in fluids)
            for a in range(len(cell.axes))
        ]
        return sum(cell.density(k) for k in fluids), sum(cell.rho(k) for k in fluids), momentum

    def outputs(self, case: Case) -> tuple[str, ...]:
        """The pressure and, with several fluids, the density of each."""
        return ("pressure", *(f"rho_{fluid.label}" for fluid in case.fluids if fluid.label))

    def output(self, cell: CoupledCell) -> list[Expression]:
        """p = cs2 (sum_k rho_k + sum_kl G_kl psi_k psi_l / 2)."""
        fluids = range(cell.count)
        psi = [cell.let(f"psi_of_{k}", self._psi(cell, k)) for k in fluids]
        acts = np.argwhere(self.attraction.matrix(cell.count)).tolist()
        between = sum(cell.number(f"G_{k}_{n}") * psi[k] * psi[n] for k, n in acts)
        rho = [cell.rho(k) for k in fluids]
        return [cell.cs2 * (sum(rho) + between / 2), *(rho if cell.count > 1 else ())]

    def jumps(self, case: Case) -> tuple[float | None, ...]:
        """None for each order parameter: its jump is not known before the run."""
        count = len(case.fluids)
        return (None,) * (count if count > 2 else 1)

    def order_parameters(self, cell: CoupledCell) -> list[Expression]:
        """rho of one fluid, rho_1 / rho of two fluids, or rho_k / rho of all of more fluids."""
        if cell.count == 1:
            return [cell.rho(0)]
        rho = [cell.rho(k) for k in range(cell.count)]
        return [each / sum(rho) for each in rho[: 1 if cell.count == 2 else None]]

    def wall(self, case: Case, wetting: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        """psi of the wetting densities, or the mean of psi in the adjacent fluid cells."""
        shown = zip(self.neighbour_fields(case), fluid_names(case), strict=True)
        if not wetting:
            return {name: (1.0, 0.0) for name, _ in shown}
        psi = self.attraction.potential
        return {name: (0.0, float(psi(wetting[label]))) for name, label in shown}

    def problems(self, case: Case) -> list[str]:
        """Errors: the form of G, the formula psi, forces, wetting and collisions."""
        found = super().problems(case)
        try:
            self.attraction.matrix(len(case.fluids))
        except ValueError as error:
            found.append(f"G: found {json.dumps(self.G)}; {error}")
        try:
            self.attraction.potential.formula.evaluate(rho=1.0)
        except FormulaError as error:
            found.append(f"psi: {error}")
        if self.force not in names("forcing"):
            found.append(f"force: found '{self.force}'; allowed: {', '.join(names('forcing'))}")
        return found + self._of_wetting(case) + self._of_collisions(case)

    def _of_wetting(self, case: Case) -> list[str]:
        """Errors of wetting densities: a fluid without one, other names, negative values."""
        found, labels = [], fluid_names(case)
        for key, boundary in solids(case):
            wetting = boundary.wetting or {}
            if wetting and set(wetting) != set(labels):
                found.append(
                    f"{key}.wetting: found {', '.join(wetting)}; allowed: a density for "
                    f"each of {', '.join(labels)}"
                )
            found += [
                f"{key}.wetting.{label}: found {rho:g}; allowed: a density, 0 or more"
                for label, rho in wetting.items()
                if rho < 0
            ]
        return found

    def _of_collisions(self, case: Case) -> list[str]:
        """Errors of collisions: forces, equilibria and rates that the model does not support."""
        found = []
        for fluid in case.fluids:
            key, collision = case.key(fluid, "collision"), fluid.collision
            if fluid.force and fluid.force.name != self.force:
                found.append(
                    f"force: found '{self.force}', but {case.key(fluid, 'force')} is "
                    f"'{fluid.force.name}'; use the same for both"
                )
            if collision.forces and self.force not in collision.forces:
                found.append(
                    f"{key}: {collision.name} does not support the force "
                    f"'{self.force}'; allowed: "
                    f"{', '.join(collision.forces)}; change coupling.force"
                )
            if not collision.equilibrium.any_unit:
                equilibrium = collision.equilibrium.name
                found.append(
                    f"{key}.equilibrium: '{equilibrium}' has a fixed density rho_0, but "
                    "densities vary with this coupling; use another one"
                )
            given = fluid.viscosity, case.lattice
            if len(case.fluids) > 1 and not momentum_rate(collision, *given):
                every = (make("collisions", name) for name in names("collisions"))
                allowed = ", ".join(one.name for one in every if momentum_rate(one, *given))
                found.append(
                    f"{key}: {collision.name} does not relax momentum at the same rate in "
                    f"all cells, which several fluids require; allowed: {allowed}, "
                    "without closure"
                )
        return found

    def warnings(self, case: Case) -> list[str]:
        """Warnings: unstable states, collapse, mixing, tau near 1/2, viscosities, wetting."""
        return phase_warnings(self.attraction, case)


def momentum_rate(collision: Collision, viscosity: float, lattice: Lattice) -> float:
    """Return the rate at which a collision relaxes the first moments.

    0 if the collision conserves them, is not linear, or has a rate that varies from cell to cell.
    """
    if not collision.linear or collision.closure:
        return 0.0
    if collision.lattices and lattice.name not in collision.lattices:
        return 0.0
    rates = collision.rates(viscosity, lattice)
    along = [float(w) * c[0] for w, c in zip(lattice.w, lattice.c, strict=True)]
    relaxed = collision.relax(lattice, along, **rates)
    moved = sum(float(r) * c[0] for r, c in zip(relaxed, lattice.c, strict=True))
    return moved / float(lattice.cs2) if moved > 1e-12 else 0.0

"""The interaction of the pseudopotential model, and warnings on the phases that result from it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree, names_of, numeric, symbolic
from mpilbm.core.formulas.values import FieldValue, names_in
from mpilbm.core.printable import shown
from mpilbm.core.units import tau_from_viscosity
from mpilbm.model.case import Case
from mpilbm.model.expressions import Expression
from mpilbm.physics.couplings import fluid_names, solids

SAMPLES = 64  # cells per side of the box at which initial densities are evaluated, at most
APART = 2.0  # largest ratio of initial densities of a case with one phase
# drops end in NaN if tau - 1/2 is below about (rho_l/rho_v) / STIFF for one fluid with bgk, and
# below PARTED (rho/rho_dissolved - 1)^(1/2) for two fluids with bgk (half of it with trt)
STIFF = 300
PARTED = 0.0105
DISTORTED = 0.1  # relative change of a viscosity by the dissolved fluid without a warning
ITERATIONS, LARGEST_LOG = 200, 50  # of the iteration for dissolved densities
DENSEST = 1e3  # densities up to DENSEST times the given one are examined for a stable liquid


class Potential:
    """The pseudopotential psi(rho), from the text of a formula of `rho`.

    `tree` is the formula; its parts without rho are replaced by the names psi_0, psi_1, …, and
    `numbers` holds their values. The kernel text depends on `tree` only. Raises FormulaError for
    invalid formulas.
    """

    def __init__(self, text: str):
        self.formula = Formula(text, ("rho",))
        self.numbers: dict[str, float] = {}
        self.tree = self._parted(self.formula.tree)

    def _parted(self, tree: Tree) -> Tree:
        """Return the tree with its parts without rho replaced by names."""
        if "rho" not in names_of(tree):
            name = f"psi_{len(self.numbers)}"
            self.numbers[name] = float(numeric(tree, {}))
            return name
        if not isinstance(tree, tuple):
            return tree
        if tree[0] == "**":
            return "**", self._parted(tree[1]), tree[2]
        return tree[0], *(self._parted(branch) for branch in tree[1:])

    def expression(self, rho: Expression, number: Callable[[str], Expression]) -> Expression:
        """psi as a SymPy expression; `number(name)` is the symbol of a number."""
        return symbolic(self.tree, {"rho": rho} | {name: number(name) for name in self.numbers})

    def __call__(self, rho: float | np.ndarray) -> np.ndarray:
        """Return psi for a number or an array of densities."""
        return numeric(self.formula.tree, {"rho": rho})

    def slope(self, rho: float | np.ndarray) -> np.ndarray:
        """Return dpsi/drho, by a central difference."""
        step = 1e-5 * np.asarray(rho)
        return (self(rho + step) - self(rho - step)) / (2 * step)


@dataclass(frozen=True)
class Attraction:
    """The interaction of the pseudopotential model: strength G and formula psi, as in the case."""

    G: float | tuple[tuple[float, ...], ...]
    psi: str

    @cached_property
    def potential(self) -> Potential:
        """The pseudopotential; raises FormulaError for an invalid formula."""
        return Potential(self.psi)

    def matrix(self, count: int) -> np.ndarray:
        """G as an array (count, count); raises ValueError if it has another shape."""
        if isinstance(self.G, tuple):
            found = np.array(self.G) if len({len(row) for row in self.G}) == 1 else np.empty(0)
        else:
            found = np.full((count, count), float(self.G))
            found -= np.diag(np.diag(found)) * (count == 2)
        if found.shape != (count, count) or (count > 2 and not isinstance(self.G, tuple)):
            raise ValueError(f"allowed for {count} fluids: {count} lists of {count} numbers")
        if not np.array_equal(found, found.T):
            raise ValueError("allowed: G_kl = G_lk, so that momentum is conserved")
        return found

    def stability(self, rho: np.ndarray) -> np.ndarray:
        """Return the matrix delta_kl + G_kl psi_k dpsi_l/drho, (dp/drho) / cs2 of one fluid.

        A uniform state with densities `rho` is unstable if an eigenvalue is negative.
        """
        psi, slope = self.potential(rho), self.potential.slope(rho)
        return np.eye(len(rho)) + self.matrix(len(rho)) * np.outer(psi, slope)


def phase_warnings(coupling: Attraction, case: Case) -> list[str]:
    """Return warnings: unstable states, collapse, mixing, tau near 1/2, viscosities, wetting.

    Empty if the densities are not known before the run.
    """
    ends = extremes(case)
    if ends is None:
        return []
    between = ends[0] + np.linspace(0, 1, 65)[:, None] * (ends[1] - ends[0])
    with np.errstate(all="ignore"):
        states = np.stack([coupling.stability(rho) for rho in between])
    if not np.isfinite(states).all():
        return [
            f"psi: found '{coupling.psi}', which is not finite at some densities from "
            f"{ends.min():.3g} to {ends.max():.3g}; change psi or rho"
        ]
    lowest = float(np.linalg.eigvals(states).real.min())
    found = _collapses(coupling, case, ends) if lowest < 0 else []
    if all(isinstance(fluid.initial.value, int | float) for fluid in case.fluids):
        return found or (_uniform(coupling, case, ends[0], lowest) if lowest < 0 else [])
    if (ends.max(axis=0) / ends.min(axis=0)).max() < APART:
        return found
    found += _stiff(case, density_ratio(coupling, ends))
    if lowest >= 0:
        return [*found, _mixes(coupling, ends, lowest)]
    return found + _dissolved(coupling, case, ends) + _covered(coupling, case, ends)


def extremes(case: Case) -> np.ndarray | None:
    """Return the initial densities, (2, fluids), at the extremes of the first fluid's density.

    Row 0 belongs to the cell with its lowest density, row 1 to the cell with its highest. None if a
    file, an array or a function that is no formula gives a density, or if they are not positive. At
    most SAMPLES cells per side of the box are evaluated.
    """
    initial = [fluid.initial for fluid in case.fluids]
    if any(each.file or isinstance(each.value, FieldValue) for each in initial):
        return None
    size = case.domain.size
    values: dict[str, float | np.ndarray] = {"t": 0.0}
    values |= zip(("nx", "ny", "nz"), map(float, size), strict=False)
    for axis, (name, n) in enumerate(zip("xyz", size, strict=False)):
        cells = np.unique(np.linspace(0, n - 1, min(n, SAMPLES)).astype(int)) + 0.5
        values[name] = cells.reshape([-1 if a == axis else 1 for a in range(len(size))])
    formulas = [
        Formula(str(each.value), names_in(len(size))).evaluate(**values) for each in initial
    ]
    rho = np.stack([each.ravel() for each in np.broadcast_arrays(*formulas)])
    found = rho[:, [rho[0].argmin(), rho[0].argmax()]].T
    return found if np.isfinite(found).all() and found.min() > 0 else None


def _uniform(coupling: Attraction, case: Case, rho: np.ndarray, lowest: float) -> list[str]:
    """Warnings: a uniform fluid that separates; `lowest` is the least dp/drho in cs2."""
    given = ", ".join(f"{n} = {r:g}" for n, r in zip(fluid_names(case), rho, strict=True))
    return [
        f"G: found {shown(coupling.G)}; a uniform fluid of rho {given} is unstable (dp/drho is "
        f"{lowest:.3g} cs2, allowed: 0 or more), and rounding errors determine where it "
        "separates; give rho as a formula, or reduce |G|"
    ]


def _mixes(coupling: Attraction, ends: np.ndarray, lowest: float) -> str:
    """Warning: phases that mix; `lowest` is the least dp/drho between them in cs2."""
    low, high = ends[:, 0]
    return (
        f"G: found {shown(coupling.G)}; phases with the densities {low:.3g} and {high:.3g} "
        f"mix: between them dp/drho is at least {lowest:.3g} cs2, but two phases require "
        "negative values; increase |G|"
    )


def density_ratio(coupling: Attraction, ends: np.ndarray) -> float:
    """Return the largest ratio of the densities of a fluid.

    With several fluids, G limits the ratio that can persist: in equilibrium F_k / rho_k = -cs2
    (psi_k / rho_k) sum_l G_kl grad psi_l balances cs2 grad log rho_k.
    """
    ratio = ends.max(axis=0) / ends.min(axis=0)
    if ends.shape[1] > 1:
        psi = coupling.potential(ends)
        pull = coupling.matrix(len(psi[0])) @ (psi[1] - psi[0]) * (psi / ends).max(axis=0)
        ratio = np.minimum(ratio, np.exp(np.abs(pull)))
    return float(ratio.max())


def _collapses(coupling: Attraction, case: Case, ends: np.ndarray) -> list[str]:
    """Warnings: fluids whose attraction leads to collapse at any density."""
    found, G = [], coupling.matrix(len(case.fluids))
    for k, name in enumerate(fluid_names(case)):
        rho = ends[:, k].max() * np.geomspace(1, DENSEST, 64)
        with np.errstate(all="ignore"):
            slope = 1 + G[k, k] * coupling.potential(rho) * coupling.potential.slope(rho)
        if (slope < 0).all():
            found.append(
                f"psi: found '{coupling.psi}', with which '{name}' has no stable liquid: "
                f"dp/drho is {slope[0]:.3g} cs2 at rho = {rho[0]:.3g} and below 0 up to "
                f"rho = {rho[-1]:.3g}, so drops collapse; use a bounded psi, "
                "or reduce |G|"
            )
    return found


def _stiff(case: Case, ratio: float) -> list[str]:
    """Warnings: tau too close to 1/2; the most viscous fluid counts (they share a velocity)."""
    thickest = max(fluid.viscosity for fluid in case.fluids)
    tau = tau_from_viscosity(thickest, case.lattice.cs2)
    least = ratio / STIFF if len(case.fluids) == 1 else PARTED * (ratio - 1) ** 0.5
    if len(case.fluids) > 1 and all("magic" in fluid.collision.numbers for fluid in case.fluids):
        least /= 2
    if tau - 0.5 >= least:
        return []
    enough = least * float(case.lattice.cs2)
    whose = "viscosity" if len(case.fluids) == 1 else "the viscosity of one fluid"
    return [
        f"tau = {tau:.4g} is too near 1/2 for a density ratio of {ratio:.3g}: "
        f"drops end in NaN below about {0.5 + least:.3g}; raise {whose} to {enough:.3g}, or "
        "reduce the density ratio"
    ]


def coexisting_ratio(coupling: Attraction, ends: np.ndarray) -> float:
    """Return the density of a fluid in its own phase over that in the other, for two fluids.

    In equilibrium d rho_k / psi_k = -G d psi_l across an interface. If psi is proportional to rho,
    log(ratio) = G psi_k / rho_k (psi_main - psi_dissolved). The total density is that of the
    initial fields, and the phases are symmetric. 1 if the fluids mix.
    """
    total, G = float(ends.sum(axis=1).mean()), coupling.matrix(2)[0, 1]
    ratio = float((ends.max(axis=0) / ends.min(axis=0)).max())
    for _ in range(ITERATIONS):
        rho = total / (1 + ratio) * np.array([ratio, 1.0])
        psi = coupling.potential(rho)
        ratio = float(np.exp(min(abs(G) * (psi[0] - psi[1]) * (psi / rho).max(), LARGEST_LOG)))
    return ratio


def _dissolved(coupling: Attraction, case: Case, ends: np.ndarray) -> list[str]:
    """Warnings: viscosities of the two phases that the dissolved fluid changes."""
    if len(case.fluids) != 2 or coupling.matrix(2).diagonal().any():
        return []
    nu = np.array([fluid.viscosity for fluid in case.fluids])
    share = 1 / (1 + coexisting_ratio(coupling, ends))
    mixing = np.array([[1 - share, share], [share, 1 - share]])
    found = mixing @ nu
    if abs(found / nu - 1).max() <= DISTORTED:
        return []
    names, largest = fluid_names(case), 1 / share - 1
    fix = f"raise |G|; the largest ratio of the viscosities of the phases is {largest:.3g}"
    if share < 0.5 and (given := np.linalg.solve(mixing, nu)).min() > 0:
        fix = f"give {given[0]:.3g} and {given[1]:.3g}, or raise |G|"
    return [
        f"the phases of {names[0]} and {names[1]} have the viscosities {found[0]:.3g} and "
        f"{found[1]:.3g} instead of {nu[0]:.3g} and {nu[1]:.3g}, because about {share:.0%} of "
        f"each is the other fluid (rho nu = sum of rho_k nu_k); {fix}"
    ]


def _covered(coupling: Attraction, case: Case, ends: np.ndarray) -> list[str]:
    """Warnings: densities in walls that no contact angle belongs to.

    psi in the wall, for two fluids psi_1 - psi_2, lies between its values in the two phases if the
    interface meets the wall.
    """
    names, found = fluid_names(case), []
    if len(names) > 2:
        return []
    sign = np.array([1.0, -1.0])[: len(names)]
    low, high = np.sort(coupling.potential(ends) @ sign)
    for key, boundary in solids(case):
        wetting = boundary.wetting or {}
        if not wetting:
            continue
        wall = float(coupling.potential(np.array([wetting[name] for name in names])) @ sign)
        if not low <= wall <= high:
            what = "psi" if len(names) == 1 else f"psi of {names[0]} minus psi of {names[1]}"
            found.append(
                f"{key}.wetting: {what} is {wall:.3g} in the wall, but {low:.3g} to "
                f"{high:.3g} in the phases; beyond these values one phase covers the wall "
                "and there is no contact angle; choose densities between those of the "
                "phases"
            )
    return found

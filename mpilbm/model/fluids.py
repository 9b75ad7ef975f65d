"""The numbers of a fluid that determine accuracy and stability, with verdicts."""

from mpilbm.core.units import mach, reynolds, tau_from_viscosity
from mpilbm.model.case import Case, Fluid
from mpilbm.model.limits import Usable, judge_mach, judge_tau
from mpilbm.model.stability import least_viscosity, stability


def of_fluid(
    case: Case, fluid: Fluid, speed: float, usable: Usable
) -> list[tuple[str, str, str, str]]:
    """Return (name, value, verdict, level) of tau, Mach number and grid Reynolds number.

    If `speed` is 0, of tau only. `speed` is the largest speed in lattice units. For a
    non-Newtonian fluid tau and the grid Reynolds number are those of its least viscosity. Advice
    names the collisions that are `usable`.
    """
    cs2, nu = float(case.lattice.cs2), least_viscosity(fluid)
    tau = tau_from_viscosity(nu, cs2)
    found = [("tau", f"{tau:.6g}", *judge_tau(tau))]
    if speed:
        number, grid = mach(speed, cs2), reynolds(nu, 1, speed)
        found.append(("Mach", f"{number:.4g}", *judge_mach(number)))
        found.append(("grid Reynolds", f"{grid:.4g}", *stability(case, fluid, speed, usable)))
    return found

"""What to think of relaxation time, Mach number and grid Reynolds number of a flow."""

from mpilbm.findings import NOTE, SERIOUS

SEVERITY = {"poor": SERIOUS, "fair": NOTE}  # of the finding for a level; good: none
FAST = 0.3  # Mach number
# Near 1 in lattice units, and 1000 at most if kg/m^3 are entered by mistake: no flow has more.
LARGEST_DENSITY = 1e6


def judge_tau(tau: float) -> tuple[str, str]:
    """Verdict and level of a relaxation time."""
    if tau < 0.501:
        return "too near 1/2: hardly stable; a finer box at this Reynolds number mends it", "poor"
    if tau < 0.51:
        return "near 1/2: stable only where the flow is well resolved", "fair"
    if tau > 2:
        return "large: inaccurate; lower velocity and viscosity together", "fair"
    return "fine", "good"


def judge_mach(number: float) -> tuple[str, str]:
    """Verdict and level of a Mach number; the compressibility error goes with its square."""
    error = f"compressibility error about Ma^2 = {number**2:.1%}"
    if number > FAST:
        return f"too fast: {error}; lower the velocity, and the viscosity with it", "poor"
    return (f"fine: {error}", "good") if number < 0.2 else (f"fast: {error}", "fair")


def judge_grid_reynolds(number: float) -> tuple[str, str]:
    """Verdict and level of u / nu, the Reynolds number of a cell."""
    if number > 20:
        return "large: likely unstable; a finer box or a lower Reynolds number mends it", "poor"
    if number > 10:
        return "rather large: bgk may be unstable, trt less so", "fair"
    return "fine", "good"

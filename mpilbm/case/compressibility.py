"""Speeds at which the real fluid of a case is compressible.

The Mach number of a case is chosen for a long time step, and is independent of the real one.
"""

from collections.abc import Iterator

from mpilbm.case.checks import given_speeds
from mpilbm.case.model import Case
from mpilbm.core.units import VELOCITY
from mpilbm.model.findings import WARNING, Finding

COMPRESSIBLE = 0.3  # real Mach number above which the density varies by more than 5 %


def real_sound(case: Case) -> Iterator[Finding]:
    """The largest given speed, if the fluid of [units] is compressible at it."""
    if case.units is None or case.sound is None:
        return
    key, speed = max(
        ((key, case.units.to_si(speed, VELOCITY)) for key, speed, _ in given_speeds(case)),
        key=lambda each: each[1],
        default=("", 0.0),
    )
    if speed > COMPRESSIBLE * case.sound:
        yield Finding(WARNING, key, f"found {speed:.4g} m/s; {too_fast(speed, case.sound)}")


def too_fast(speed: float, sound: float) -> str:
    """That the real fluid is compressible at this speed; both in m/s."""
    return (
        f"{speed / sound:.2g} times the speed of sound of the real fluid, {sound:.4g} m/s, where "
        "it is compressible; the result is that of an incompressible fluid; allowed: "
        f"{COMPRESSIBLE:g} times, {COMPRESSIBLE * sound:.3g} m/s; lower the speed"
    )

"""A heavy fluid above a light one: the initial growth rate of waves on the interface."""

from typing import ClassVar

import numpy as np

from validations import Finding, Validation, Variant, Verdict
from validations.capillary_wave import NU, TENSION, amplitudes, prosperetti, swing, wave_box

LENGTHS = {False: (128, 160, 192), True: (192, 256, 384)}
SMALL = 0.4  # cells at the begin
GROWTH = 12.0


class RayleighTaylor(Validation):
    """Free energy, one wave in a box as high as long; the linear growth rate within 5 %.

    Both fluids have the density 1; the force per volume on the upper one is g / 2 down, that on the
    lower one g / 2 up. Viscosity and tension as in capillary_wave. The rate is the slope of
    log(amplitude) between 3 and 12 times the first one (0.4 cells), held against the same of
    Prosperetti 1981: from rest, viscous, omega_0^2 = (sigma k^3 - g k) / 2. --set wavelengths (a
    list, in cells).
    """

    settings: ClassVar[dict] = {"wavelengths": None}
    axes: ClassVar[dict] = {"amplitude": ("t (steps)", "amplitude / initial amplitude (1)")}
    theory = "Prosperetti 1981"

    def variants(self, full):
        """Wavelengths in cells."""
        lengths = self.settings["wavelengths"] or LENGTHS[full]
        return {f"wavelength {n}": Variant(self._box(n)) for n in lengths}

    def _box(self, n):
        t = np.linspace(0, 20 / np.sqrt(-swing(n, pull(n))), 400)
        grown = prosperetti(t, 2 * np.pi / n, NU, swing(n, pull(n)))
        return wave_box(n, round(t[np.argmax(grown > 1.15 * GROWTH)]), SMALL, pull(n))

    def judge(self, run):
        """The growth rate beside that of the theory."""
        n = run.tables["domain"]["size"][0]
        t, a = amplitudes(run)
        exact = prosperetti(t, 2 * np.pi / n, NU, swing(n, pull(n)))
        found, wanted = rate(t, a / a[0]), rate(t, exact)
        curves = {"amplitude": (t, a / a[0]), "amplitude, exact": (t, exact)}
        return Verdict([
            Finding("growth over theory", found / wanted, 0.95, 1.05),
            Finding("growth", found),
            Finding("without viscosity", np.sqrt(-swing(n, pull(n)))),
        ], curves)  # fmt: skip


def pull(n: int) -> float:
    """g, three times the value that the tension stabilises at this wavelength."""
    return 3 * TENSION * (2 * np.pi / n) ** 2


def rate(t, a) -> float:
    """d log(a) / dt where a has grown 3 to 12 times."""
    part = (a > 3) & (a < GROWTH)
    return float(np.polyfit(t[part], np.log(a[part]), 1)[0])


VALIDATION = RayleighTaylor()

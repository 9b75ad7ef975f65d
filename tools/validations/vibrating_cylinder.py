"""A cylinder on a spring across a stream, which its own vortices shake, at Re 150."""

from typing import ClassVar

import numpy as np

from validations import Finding, Validation, Variant, Verdict, read_table

FILE = "vibrating_cylinder_re150.csv"
RE, MASS = 150, 2.0  # MASS over rho D^2
SPEED = 0.08
BOX, INLET = (35, 24), 12  # in D
VELOCITIES = {False: (4,), True: (3, 4, 5, 6, 7, 8)}
PERIODS, LATE = 16, 5  # of the spring in vacuum, in all and evaluated
SOURCES = {"ahn_kallinderis": "Ahn & Kallinderis 2006", "borazjani": "Borazjani et al. 2008"}
ERROR = 0.05


class VibratingCylinder(Validation):
    """The amplitude over D within 5 % of the published values, or between them, at U* = 4 and 5.

    Mass 2 rho D^2, no damper, U* = U / (f_n D) with the frequency of the spring in vacuum, motion
    across the stream only: m d^2 y/dt^2 + k y = F_y. Partially saturated cells, regularized,
    float32. The box is 35 x 24 D and periodic across the stream; the cylinder is 12 D behind the
    inlet and starts with half of the speed of the stream across it, since vibrations grow slowly
    from rest. The amplitude is half of the distance between the largest and the smallest place in
    the last 5 of 16 periods of the spring.
    Without --full: U* = 4. --set cells (across the cylinder), velocities (a list of U*).
    """

    settings: ClassVar[dict] = {"cells": 16, "velocities": None}
    axes: ClassVar[dict] = {
        "place": ("t f_n (1)", "y / D (1)"),
        "amplitude": ("U* (1)", "amplitude / D (1)"),
    }

    def variants(self, full):
        """The reduced velocities."""
        reduced = self.settings["velocities"] or VELOCITIES[full]
        return {f"U* = {v}": self._variant(v, self.settings["cells"]) for v in reduced}

    def _variant(self, reduced, n):
        period = reduced * n / SPEED
        mass = MASS * n**2
        spring = mass * (2 * np.pi / period) ** 2
        disc = {"name": "sphere", "centre": [INLET * n, BOX[1] * n / 2], "radius": n / 2}
        motion = {"name": "free", "density": mass / (np.pi * n**2 / 4), "spring": [0, spring],
                  "fixed": ["x", "rotation"], "velocity": [0, SPEED / 2]}  # fmt: skip
        inflow = {"name": "equilibrium", "where": ["x-"], "velocity": [SPEED, 0]}
        return Variant({
            "title": f"Cylinder on a spring, U* = {reduced}",
            "lattice": {"name": "D2Q9"},
            "domain": {"size": [side * n for side in BOX], "periodic": [False, True]},
            "fluid": {"reynolds": RE, "length": n, "velocity": SPEED},
            "collision": {"name": "regularized"},
            "initial": {"u": [SPEED, 0]},
            "boundary": [inflow, {"name": "equilibrium", "where": ["x+"], "rho": 1.0}],
            "body": [{"label": "cylinder", "shape": disc, "motion": motion,
                      "boundary": {"name": "partially_saturated"}}],
            "run": {"steps": round(PERIODS * period)},
            "output": [{"name": "body_forces", "every": 50, "velocity": [SPEED, 0], "length": n}],
        })  # fmt: skip

    def judge(self, run):
        """Amplitude and frequency of the last periods."""
        rows, n = run.forces("cylinder"), run.tables["fluid"]["length"]
        reduced = float(run.label.rpartition("= ")[2])
        t, y = rows["time"], rows["position_y"] / n - BOX[1] / 2
        late = t > t[-1] * (1 - LATE / PERIODS)
        low, high = y[late].min(), y[late].max()
        amplitude = (high - low) / 2
        found = Finding("amplitude / D", amplitude, *allowed(reduced))
        findings = [found, Finding("f D / U", frequency(t[late], y[late]) * n / SPEED)]
        findings.append(Finding("mean c_d", rows["c_d"][late].mean()))
        curves = {f"place, {run.label}": (t * SPEED / (reduced * n), y)}
        return Verdict(findings, curves)

    def lines(self, verdicts):
        """Amplitudes over U*."""
        points = [(float(label.rpartition("= ")[2]), verdict.findings[0].found)
                  for label, verdict in verdicts.items() if verdict.findings]  # fmt: skip
        return {"amplitude": {"mpilbm": tuple(map(np.array, zip(*sorted(points), strict=True)))}}

    def published(self, panel):
        """Amplitudes of both sources."""
        if panel != "amplitude":
            return {}
        table = read_table(FILE)
        return {source: (table["ured"], table[name]) for name, source in SOURCES.items()}


def allowed(reduced: float) -> tuple[float, ...]:
    """The limits of the amplitude in the middle of the lock-in; () elsewhere."""
    if reduced not in (4, 5):
        return ()
    table = read_table(FILE)
    values = [table[name][table["ured"] == reduced][0] for name in SOURCES]
    return (1 - ERROR) * min(values), (1 + ERROR) * max(values)


def frequency(t, y) -> float:
    """The frequency of y about its mean, from the times at which it rises through it."""
    y = y - y.mean()
    up = np.flatnonzero((y[:-1] < 0) & (y[1:] >= 0))
    times = t[up] - y[up] * (t[up + 1] - t[up]) / (y[up + 1] - y[up])
    return float(1 / np.diff(times).mean())


VALIDATION = VibratingCylinder()

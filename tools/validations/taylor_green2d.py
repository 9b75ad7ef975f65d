"""Rounding errors in slow flows: the 2D Taylor-Green vortex in several precisions."""

from typing import ClassVar

import numpy as np

from validations import Finding, Validation, Variant, Verdict, tables

PRECISIONS = {
    "float32, full f": {"compute": "float32", "storage": "float32", "offset": False},
    "float32": {"compute": "float32", "storage": "float32", "offset": True},
    "mixed": {"compute": "float64", "storage": "float32", "offset": True},
    "float64": {"compute": "float64", "storage": "float64", "offset": True},
}
SPEEDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LENGTHS = 1.95  # at u0, in sides of the box: 10^6 steps of 256 cells at u0 = 0.0005


class TaylorGreen2D(Validation):
    """Januszewski & Kostur 2014, figure 6: relative L2 error of u against u0, bgk, Re = 1000.

    In float64 it is constant at low u0 and grows as u0^2; in float32 it grows again at low u0, less
    so where populations are stored as deviations.
    """

    def variants(self, full):
        """Precisions and speeds; 256^2 cells in full, else 64^2."""
        n = 256 if full else 64
        return {
            f"{name}, u0 = {u0}": Variant(self._tables(n, u0, precision))
            for name, precision in PRECISIONS.items()
            for u0 in SPEEDS
        }

    def _tables(self, n, u0, precision):
        steps = round(LENGTHS * n / u0)
        waves = ["-{0}*cos(2*pi*x/nx)*sin(2*pi*y/ny)", "{0}*sin(2*pi*x/nx)*cos(2*pi*y/ny)"]
        rho = f"1 - 3*{u0}**2/4*(cos(4*pi*x/nx) + cos(4*pi*y/ny))"
        return tables(
            "taylor_green2d",
            domain={"size": [n, n]},
            fluid={"length": n, "velocity": u0},
            precision=precision,
            initial={"rho": rho, "u": [wave.format(u0) for wave in waves]},
            run={"steps": steps},
            output=[{"name": "snapshot", "every": steps}],
        )

    def judge(self, run):
        """The error at the end."""
        n, u0 = run.tables["domain"]["size"][0], run.tables["fluid"]["velocity"]
        k, nu = 2 * np.pi / n, u0 * n / run.tables["fluid"]["reynolds"]
        x = (np.arange(n) + 0.5) * k
        decay = u0 * np.exp(-2 * nu * k**2 * run.tables["run"]["steps"])
        exact = np.stack([-np.cos(x) * np.sin(x)[:, None], np.sin(x) * np.cos(x)[:, None]], -1)
        with run.snapshot() as snapshot:
            u = snapshot.u[0, ..., :2].astype(float)
        error = np.linalg.norm(u - decay * exact) / np.linalg.norm(decay * exact)
        return Verdict([Finding("error of u", error)])

    logarithmic = ("",)
    axes: ClassVar[dict] = {"": ("u0 (cells/step)", "L2 error of u, relative to the exact u (1)")}

    def lines(self, verdicts):
        """Errors against u0, a line each precision."""
        found = {}
        for name in PRECISIONS:
            errors = {
                u0: verdicts[f"{name}, u0 = {u0}"].findings[0].found
                for u0 in SPEEDS
                if f"{name}, u0 = {u0}" in verdicts
            }
            found[name] = np.array(list(errors)), np.array(list(errors.values()))
        return {"bgk, Re = 1000": found}

    def together(self, verdicts):
        """The shapes of the curves."""
        error = {label: verdict.findings[0].found for label, verdict in verdicts.items()}
        if len(error) < len(PRECISIONS) * len(SPEEDS):
            return []
        slow, fast = SPEEDS[0], SPEEDS[-1]
        full, single, double = (
            {u0: error[f"{name}, u0 = {u0}"] for u0 in SPEEDS}
            for name in ("float32, full f", "float32", "float64")
        )
        growth = np.log(double[fast] / double[fast / 2]) / np.log(2)
        return [
            Finding(
                "float64: slowest error over that at 0.01", double[slow] / double[0.01], 0.5, 1.5
            ),
            Finding("float64: exponent of the growth", growth, 1.5, 2.5),
            Finding("float32, full f: slowest error over float64's", full[slow] / double[slow], 3),
            Finding(
                "float32: slowest error over that of full f", single[slow] / full[slow], 0, 0.5
            ),
        ]


VALIDATION = TaylorGreen2D()

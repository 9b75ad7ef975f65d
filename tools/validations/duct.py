"""Flow in a square duct against its series."""

from typing import ClassVar

import numpy as np

from validations import Finding, Validation, Variant, Verdict, tables

TOP, VISCOSITY = 0.05, 0.1


class Duct(Validation):
    """Steady flow along a square duct, half-way walls, trt: relative L2 error of u 5e-4 on 24^2.

    The error is of second order: a quarter if each side has twice the cells. float64; 12^2 and 24^2
    cells, with --full also 48^2.
    """

    axes: ClassVar[dict] = {"u": ("y / side (1)", "u / largest u (1)")}

    def source(self, panel):
        """The series of the docstring of `series`."""
        return "exact series"

    def variants(self, full):
        """By cells across."""
        return {f"{n}": Variant(self._tables(n)) for n in ((12, 24, 48) if full else (12, 24))}

    def _tables(self, n):
        steps = 10 * n * n
        force = TOP * VISCOSITY / (0.29468541 * (n / 2) ** 2)
        return tables(
            "duct3d",
            domain={"size": [1, n, n]},
            fluid={"viscosity": VISCOSITY},
            precision={"compute": "float64", "storage": "float64"},
            force={"name": "guo", "value": [force, 0, 0]},
            run={"steps": steps, "steady": None},
            output=[{"name": "snapshot", "every": steps}],
        )

    def judge(self, run):
        """The error, and the profile across the middle."""
        n, force = run.tables["domain"]["size"][1], run.tables["force"]["value"][0]
        exact = series(n) * force * (n / 2) ** 2 / VISCOSITY
        with run.snapshot() as snapshot:
            u = snapshot.u[:, :, 0, 0].astype(float)
        error = np.linalg.norm(u - exact) / np.linalg.norm(exact)
        y = (np.arange(n) + 0.5) / n
        middle = u[n // 2 - 1 : n // 2 + 1].mean(axis=0) / TOP
        return Verdict([Finding("error of u", error, 0, 5e-4 * (24 / n) ** 2)], {"u": (y, middle)})

    def together(self, verdicts):
        """The order between the two finest."""
        sizes = sorted(map(int, verdicts))[-2:]
        if len(sizes) < 2:
            return []
        coarse, fine = (verdicts[str(n)].findings[0].found for n in sizes)
        order = np.log(coarse / fine) / np.log(sizes[1] / sizes[0])
        return [Finding("order", order, 1.9, 2.5)]

    def reference(self):
        """The series through the middle, between two cells."""
        n = 48
        y = (np.arange(n) + 0.5) / n
        return {"u": (y, series(n)[n // 2 - 1 : n // 2 + 1].mean(axis=0) / 0.29468541)}


def series(n: int) -> np.ndarray:
    """u nu / (G a^2) at the centres of n x n cells, -a < y, z < a.

    (16 / pi^3) sum over odd k of
    (-1)^((k-1)/2) (1 - cosh(k pi z/2a) / cosh(k pi/2)) cos(k pi y/2a) / k^3.
    """
    at = ((np.arange(n) + 0.5) / n - 0.5) * np.pi
    total = np.zeros((n, n))
    for k in range(1, 200, 2):
        # cosh(k z) / cosh(k pi/2) without overflow
        far = np.exp(k * (np.abs(at) - np.pi / 2))
        ratio = far * (1 + np.exp(-2 * k * np.abs(at))) / (1 + np.exp(-k * np.pi))
        sign = -1 if k // 2 % 2 else 1
        total += sign * np.outer(1 - ratio, np.cos(k * at)) / k**3
    return 16 / np.pi**3 * total


VALIDATION = Duct()

"""Flow in a square duct against its series."""

import numpy as np

from validations import Finding, Validation, Variant, Verdict, tables

TOP = 0.05


class Duct(Validation):
    """Steady flow along a square duct: relative L2 error of u, of second order.

    u = 4 G a^2 / (pi^3 nu / 4) ... summed over odd n, see `series`. Largest and mean velocity within
    0.1 % on 48^2 cells; twice the cells, a quarter of the error. In quick: 12^2, 24^2 and 48^2.
    """

    def variants(self, full):
        """By cells across."""
        return {f"{n}": Variant(self._tables(n)) for n in ((24, 48, 96) if full else (12, 24, 48))}

    def _tables(self, n):
        nu, steps = 0.1, 10 * n * n
        force = TOP * nu / (0.29468541 * (n / 2) ** 2)
        return tables(
            "duct3d",
            domain={"size": [2, n, n]},
            fluid={"viscosity": nu},
            precision={"compute": "float64", "storage": "float64"},
            force={"name": "guo", "value": [force, 0, 0]},
            run={"steps": steps, "steady": {"every": n * n // 4, "tolerance": 1e-8}},
            output=[{"name": "snapshot", "every": steps}],
        )

"""Lid-driven cube at Re = 1000 against Albensoeder & Kuhlmann (2005)."""

from typing import ClassVar

from mpilbm.view.plot.profiles import Comparison, read_reference
from validations import (
    REFERENCE,
    Finding,
    Validation,
    Variant,
    Verdict,
    cite,
    collisions,
    quick_logarithms,
    tables,
)

COLUMNS = {
    "u": "cavity3d_re1000_AK2005_table5_u_vertical.csv",
    "w": "cavity3d_re1000_AK2005_table6_w_horizontal.csv",
}
SPEED = 0.1


class Cavity3D(Validation):
    """u and w along the centre lines: within 0.01 of the lid's speed, every collision.

    201^3 cells in full, as Januszewski & Kostur 2014, figure 12; else 48^3, within 0.03.
    """

    axes: ClassVar[dict] = {"u": ("z / L (1)", "u / U (1)"), "w": ("x / L (1)", "w / U (1)")}

    def variants(self, full):
        """Every collision of D3Q19, those of D3Q27 alone on it; until steady."""
        n = 201 if full else 48
        pairs = dict.fromkeys(collisions("D3Q19"), "D3Q19")
        pairs |= {name: "D3Q27" for name in collisions("D3Q27") if name not in pairs}
        return {
            f"{name} {lattice}": Variant(
                tables(
                    "cavity3d_re1000",
                    lattice={"name": lattice},
                    domain={"size": [n] * 3},
                    fluid={"length": n},
                    collision={"name": name},
                    run={"steps": round(40 * n / SPEED),
                         "steady": {"every": round(n / SPEED), "tolerance": 2e-4}},
                    output=[{"name": "snapshot", "every": round(40 * n / SPEED)}],
                )
                | quick_logarithms(name, full)
            )
            for name, lattice in pairs.items()
        }  # fmt: skip

    def judge(self, run):
        """Largest deviations from the points between the walls."""
        verdict = Verdict()
        allowed = 0.01 if run.tables["domain"]["size"][0] > 200 else 0.03
        with run.snapshot() as snapshot:
            for name, file in COLUMNS.items():
                found = Comparison.read(REFERENCE / file, snapshot, 1000)
                apart, _ = found.deviation()
                verdict.findings.append(Finding(f"{name}, largest", apart, 0, allowed))
                verdict.curves[name] = found.position, found.velocity
        return verdict

    def source(self, panel):
        """Albensoeder & Kuhlmann."""
        return cite(COLUMNS[panel[0]])

    def reference(self):
        """The points of tables 5 and 6."""
        found = {name: read_reference(REFERENCE / file)[1] for name, file in COLUMNS.items()}
        return {name: (table[:, 0], table[:, 1]) for name, table in found.items()}


VALIDATION = Cavity3D()

"""Lid-driven square cavity against Ghia, Ghia & Shin (1982) and Botella & Peyret (1998)."""

from typing import ClassVar

import numpy as np

from mpilbm.view.plot.profiles import Comparison, interpolate, read_reference
from validations import REFERENCE, Finding, Validation, Variant, Verdict, cite, collisions, tables

GHIA = {
    "u": "cavity2d_ghia1982_table1_u_vertical.csv",
    "v": "cavity2d_ghia1982_table2_v_horizontal.csv",
}
SPECTRAL = {
    "u": "cavity2d_re1000_botella_peyret1998_u_vertical.csv",
    "v": "cavity2d_re1000_botella_peyret1998_v_horizontal.csv",
}
MISPRINTS = {("v", 400): 0.9063}  # as table II says on top
CELLS = {100: 64, 400: 128, 1000: 256}
LENGTHS = {100: 20, 400: 35, 1000: 40}  # of lid travel, until nothing changes
SPEED = 0.1


class Cavity2D(Validation):
    """u and v along the centre lines at Re = 100, 400 and 1000: within 0.01 of the lid's speed.

    At Re = 1000 the reference is the spectral solution of Botella & Peyret, Comput. Fluids 27, 421;
    Ghia's points are up to 0.02 off it near the right wall.
    """

    axes: ClassVar[dict] = {"u": ("y / L (1)", "u / U (1)"), "v": ("x / L (1)", "v / U (1)")}

    def variants(self, full):
        """Every collision at every Reynolds number; on a GPU on twice the cells a side."""
        found = {}
        for name in collisions("D2Q9"):
            for reynolds, n in CELLS.items():
                n *= 2 if full else 1
                steps = round(LENGTHS[reynolds] * n / SPEED)
                found[f"{name} Re {reynolds}"] = Variant(
                    tables(
                        "cavity2d_re1000",
                        domain={"size": [n, n]},
                        fluid={"reynolds": reynolds, "length": n},
                        collision={"name": name},
                        run={"steps": steps},
                        output=[{"name": "snapshot", "every": steps}],
                    )
                )
        return found

    def judge(self, run):
        """Largest deviations from the points between the walls."""
        verdict, reynolds = Verdict(), run.tables["fluid"]["reynolds"]
        with run.snapshot() as snapshot:
            for name, file in (SPECTRAL if reynolds == 1000 else GHIA).items():
                found = Comparison.read(REFERENCE / file, snapshot, reynolds)
                at, values = found.points[1:-1].T
                apart = np.abs(interpolate(found.position, found.velocity, at) - values)
                kept = at != MISPRINTS.get((name, reynolds))
                verdict.findings.append(Finding(f"{name}, largest", apart[kept].max(), 0, 0.01))
                verdict.curves[f"{name}, Re {reynolds}"] = found.position, found.velocity
        return verdict

    def source(self, panel):
        """Botella & Peyret at Re = 1000, otherwise Ghia et al."""
        files = SPECTRAL if panel.endswith("Re 1000") else GHIA
        return cite(files[panel[0]])

    def reference(self):
        """The points of both tables; at Re = 1000 also Ghia's."""
        found = {}
        for name, file in SPECTRAL.items():
            found[f"{name}, Re 1000"] = read_reference(REFERENCE / file)[1].T
        for name, file in GHIA.items():
            names, table = read_reference(REFERENCE / file)
            for k, column in enumerate(names[1:], 1):
                reynolds = column.partition("_Re")[2]
                if int(reynolds) in CELLS:
                    label = f"{name}, Re {reynolds}"
                    label += " (Ghia)" if label in found else ""
                    found[label] = table[:, 0], table[:, k]
        return found


VALIDATION = Cavity2D()

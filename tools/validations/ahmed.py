"""Drag of the Ahmed body with a slant of 25 degrees, from a surface mesh."""

from itertools import pairwise
from typing import ClassVar

from validations import Finding, Validation, Variant, Verdict, changed, tables

MEASURED = 0.285  # Ahmed, Ramm & Faltin 1984, fig. 10, at 60 m/s; on stilts, above a fixed board
CLEARANCE = 50 / 1044  # height above the road over the length
SIZES = (64, 128, 192)  # cells along the body
LENGTHS = {192: 12}  # length / speed to the end; of other sizes 20
COARSE = 40  # without --full
LATE = 0.5  # the part of the run that is averaged
BOX = (5, 1.75, 1.25)  # sides of the box over the length of the body


class Ahmed(Validation):
    """c_d and c_l on several grids, against the measured drag of 0.285.

    Half-way walls, Smagorinsky model, no wall model: the drag approaches the measured value from
    above as the grid resolves more of the boundary layers, which no grid here does. It must lie
    above the measured value and decrease from grid to grid. Without --full: 40 cells along the
    body. --set cells, lengths (body lengths that the air passes).
    """

    settings: ClassVar[dict] = {"cells": None, "lengths": None}
    axes: ClassVar[dict] = {"c_d": ("t U / length (1)", "c_d (1)")}

    def variants(self, full):
        """By cells along the body."""
        cells = self.settings["cells"]
        sizes = [cells] if cells else SIZES if full else [COARSE]
        return {f"{n} cells": self._variant(n) for n in sizes}

    def _variant(self, n):
        case = tables("ahmed")
        speed, lengths = case["fluid"]["velocity"], self.settings["lengths"] or LENGTHS.get(n, 20)
        steps = round(lengths * n / speed)
        size = [round(side * n) for side in BOX]
        place = {"length": n, "at": [1.75 * n, size[1] / 2, CLEARANCE * n]}
        shape = case["body"][0]["shape"] | place
        return Variant(changed(case, {
            "domain": {"size": size},
            "fluid": {"length": n},
            "body": [case["body"][0] | {"shape": shape}],
            "run": {"steps": steps},
            "output": [{"name": "snapshot", "every": steps}, case["output"][1]],
        }))  # fmt: skip

    def judge(self, run):
        """Means over the last part of the run."""
        rows = run.forces("car")
        time = rows["time"] * run.tables["fluid"]["velocity"] / run.tables["fluid"]["length"]
        late = time > (1 - LATE) * time[-1]
        c_d, c_l = rows["c_d"][late].mean(), rows["c_l"][late].mean()
        return Verdict(
            [Finding("c_d", c_d, MEASURED), Finding("c_d over 0.285", c_d / MEASURED),
             Finding("c_l", c_l)],
            {"c_d": (time[time > 1], rows["c_d"][time > 1])},
        )  # fmt: skip

    def bands(self, panel):
        """The measured drag."""
        return {"Ahmed, Ramm & Faltin 1984, measured": (MEASURED, MEASURED)}

    def together(self, verdicts):
        """c_d must decrease from each grid to the next."""
        found = [verdict.findings[0].found for verdict in verdicts.values() if verdict.findings]
        return [
            Finding(f"c_d of grid {k + 1} over that of grid {k}", fine / coarse, high=1)
            for k, (coarse, fine) in enumerate(pairwise(found), 1)
        ]


VALIDATION = Ahmed()

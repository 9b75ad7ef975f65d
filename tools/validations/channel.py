"""Turbulent channel at Re_tau = 180 against Moser, Kim & Mansour (1999)."""

import numpy as np

from validations import Finding, Validation, Variant, Verdict, read_table, tables

SPEED = 0.00577  # u_tau
DEVELOP, SAMPLE = 10, 15  # h/u_tau


class Channel(Validation):
    """Ferrari et al. 2023, section 4.2: U+ within 3 %, the peak of u_rms+ within 5 %.

    Channels of 832 x 104 x 104 cells and of 1664 x 208 x 208, the paper's; 10 h/u_tau to develop,
    15 of samples; cumulant on D3Q27. Quick: 2 h/u_tau of 104 x 26 x 26, as it is.
    """

    def variants(self, full):
        """Two sizes; the larger takes hours."""
        if not full:
            return {"104 x 26 x 26": Variant(self._tables(26, 1, 1))}
        return {
            f"{8 * n} x {n} x {n}": Variant(self._tables(n, DEVELOP, SAMPLE)) for n in (104, 208)
        }

    def _tables(self, n, develop, sample):
        turn = round(n / 2 / SPEED)
        every = turn // 20
        return tables(
            "channel_retau180",
            domain={"size": [(8 if n > 26 else 4) * n, n, n]},
            fluid={"length": n / 2},
            force={"name": "guo", "value": [SPEED**2 / (n / 2), 0, 0]},
            run={"steps": every * 20 * (develop + sample)},
            output=[
                {"name": "statistics", "average": ["x", "z"],
                 "start": every * 20 * develop, "every": every, "write": every * 100},
                {"name": "monitor", "every": 10 * every},
                {"name": "checkpoint", "every": every * 20 * 5, "keep": 1},
            ],
        )  # fmt: skip

    def judge(self, run):
        """Both halves averaged, in wall units of the friction that the force balances."""
        n, fluid = run.tables["domain"]["size"][1], run.tables["fluid"]
        nu = SPEED * fluid["length"] / fluid["reynolds"]
        path = sorted(run.directory.glob("statistics_y_*.csv"))[-1]
        columns = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
        half = slice(0, (n + 1) // 2)
        y = columns[0][half] * SPEED / nu
        u, uu, vv, ww = (
            (columns[k] + columns[k][::-1])[half] / 2 / SPEED**power
            for k, power in ((2, 1), (5, 2), (8, 2), (10, 2))
        )
        known = read_table("channel_retau180_mkm1999.csv")
        mean = np.interp(y, known["yplus"], known["Uplus"])
        full = n > 26
        verdict = Verdict([
            Finding("U+, largest relative deviation for y+ > 3",
                    np.abs(u / mean - 1)[y > 3].max(), 0, 0.03 if full else np.inf),
            Finding("peak of u_rms+ over the published 2.658, less 1",
                    np.sqrt(uu.max()) / known["urms"].max() - 1, *((-0.05, 0.05) if full else ())),
            Finding("y+ of the peak (published: 15.3)", y[uu.argmax()]),
        ])  # fmt: skip
        verdict.curves["U+"] = y, u
        for name, square in {"urms": uu, "vrms": vv, "wrms": ww}.items():
            verdict.curves[name] = y, np.sqrt(square)
        return verdict

    def reference(self):
        """The spectral solution."""
        table = read_table("channel_retau180_mkm1999.csv")
        panels = {"U+": "Uplus", "urms": "urms", "vrms": "vrms", "wrms": "wrms"}
        return {panel: (table["yplus"], table[name]) for panel, name in panels.items()}


VALIDATION = Channel()

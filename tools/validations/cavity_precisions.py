"""What precision does to mass and symmetry: the cubic cavity at Re = 30 000."""

import numpy as np

from validations import Finding, Validation, Variant, Verdict, tables

SPEED = 0.1
TYPES = {"SP": ("float32", "float32"), "MP": ("float64", "float32"), "DP": ("float64", "float64")}


class CavityPrecisions(Validation):
    """Obrecht et al. 2013, figures 10 to 12: mean density and loss of mirror symmetry over time.

    Single, mixed and double precision, with (*) and without deviations stored: mrt, D3Q19. 384^3
    cells and 20 lengths of lid travel in full; quick: 32^3 at Re = 1000, 10 lengths. Expected: SP
    and MP drift most; deviations lose ten times less.
    """

    def variants(self, full):
        """The six precisions."""
        n, reynolds, lengths = (384, 30000, 20) if full else (32, 1000, 10)
        every = round(n / SPEED)
        return {
            f"{name}{'*' * offset}": Variant(
                tables(
                    "cavity3d_re1000",
                    domain={"size": [n] * 3},
                    fluid={"length": n, "reynolds": reynolds},
                    collision={"name": "mrt"},
                    layout={"name": "esopull"},
                    precision={"compute": compute, "storage": storage, "offset": offset},
                    run={"steps": lengths * every, "steady": None},
                    output=[{"name": "monitor", "every": every},
                            {"name": "snapshot", "every": lengths * every, "fields": ["u"]}],
                )
            )
            for name, (compute, storage) in TYPES.items()
            for offset in (False, True)
        }  # fmt: skip

    def judge(self, run):
        """Mean density - 1 over time; largest |u - mirrored u| at the end, over the lid's speed."""
        rows, n = run.monitor, run.tables["domain"]["size"][0]
        drift = rows["mass"] / n**3 - 1
        with run.snapshot() as snapshot:
            apart = 0.0
            for plane in range(n):
                u = snapshot.u[plane].astype(float)
                mirrored = u[::-1] * np.array([1, -1, 1])  # y -> -y
                apart = max(apart, np.sqrt(((u - mirrored) ** 2).sum(axis=-1)).max())
        verdict = Verdict([
            Finding("mean density - 1 at the end", drift[-1]),
            Finding("loss of symmetry at the end", apart / SPEED),
        ])  # fmt: skip
        verdict.curves["|mean density - 1|"] = rows["step"] * SPEED / n, np.abs(drift)
        return verdict

    def together(self, verdicts):
        """Deviations stored against full populations in float32."""
        if not {"SP", "SP*"} <= verdicts.keys():
            return []
        full, single = (abs(verdicts[name].findings[0].found) for name in ("SP", "SP*"))
        return [Finding("drift of SP* over that of SP", single / full, 0, 0.1)]


VALIDATION = CavityPrecisions()

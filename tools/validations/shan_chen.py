"""One fluid that changes its phase: densities, surface tension and Laplace's law."""

import h5py
import numpy as np

from validations import Finding, Validation, Variant, Verdict, read_table, tables

STRENGTHS = (-4.2, -4.5, -4.8, -5.0)
RADII = {False: (14, 18, 24), True: (16, 24, 32, 48)}
DROP = -5.0


class ShanChenPhases(Validation):
    """Flat interfaces beside Shan 2008 (mechanical equilibrium), drops beside Laplace's law.

    Densities of a flat interface: liquid within 2 %, vapour within 3 % of the formula. Drops: the
    jump of the pressure is dp R = sigma (1 - d/R) with d as long as the interface is thick; the
    fitted sigma is held against that of the flat interface,
    sigma = -(G cs4 / 2) sum (psi(y + 1) - psi(y))^2.
    """

    def variants(self, full):
        """Flat interfaces at several G, drops of several radii."""
        flat = {f"flat, G = {G}": Variant(self._flat(G, 256 if full else 96)) for G in STRENGTHS}
        drops = {f"drop, R = {R}": Variant(self._drop(R, full)) for R in RADII[full]}
        return flat | drops

    def _flat(self, G, n):
        vapour, liquid = densities(G)
        shape = f"(tanh((y - {n / 4})/2) - tanh((y - {3 * n / 4})/2))/2"
        return self._tables(G, [4, n], f"{vapour} + {liquid - vapour}*{shape}", 20000)

    def _drop(self, R, full):
        vapour, liquid = densities(DROP)
        r = "sqrt((x - nx/2)**2 + (y - ny/2)**2)"
        shape = f"(1 - tanh(({r} - {R})/2))/2"
        steps = 40000 if full else 8000
        rho = f"{vapour} + {liquid - vapour}*{shape}"
        return self._tables(DROP, [4 * R, 4 * R], rho, steps)

    def _tables(self, G, size, rho, steps):
        fields = ["rho", "u", "pressure"]
        return tables(
            "shan_chen_drop2d",
            domain={"size": size},
            coupling={"G": G},
            precision={"compute": "float64", "storage": "float64"},
            initial={"rho": rho},
            run={"steps": steps},
            output=[{"name": "snapshot", "every": steps, "fields": fields}],
        )

    def judge(self, run):
        """Densities; the surface tension by the profile, or by Laplace's law."""
        G = run.tables["coupling"]["G"]
        with run.snapshot() as snapshot, h5py.File(snapshot.path) as file:
            cells = file["VTKHDF/CellData"]
            rho, u, p = (cells[name][0].astype(float) for name in ("rho", "u", "pressure"))
        vapour, liquid = densities(G)
        speed = Finding("spurious velocity", np.linalg.norm(u, axis=-1).max())
        if "flat" in run.label:
            at = len(rho) // 2
            found = [
                Finding("liquid over formula", rho[at, 0] / liquid, 0.98, 1.02),
                Finding("vapour over formula", rho[0, 0] / vapour, 0.97, 1.03),
            ]
            steps = np.diff(1 - np.exp(-rho[:, 0]), append=1 - np.exp(-rho[0, 0]))
            sigma = -G / 18 * np.sum(steps**2) / 2
            return Verdict([*found, Finding("surface tension", sigma), speed])
        inside, outside = (slice(len(rho) // 2 - 2, len(rho) // 2 + 2),) * 2, (slice(0, 4),) * 2
        share = (rho - rho[outside].mean()) / (rho[inside].mean() - rho[outside].mean())
        radius = np.sqrt(share.sum() / np.pi)
        sigma = (p[inside].mean() - p[outside].mean()) * radius
        return Verdict([Finding("radius", radius), Finding("dp R", sigma), speed])

    def together(self, verdicts):
        """The surface tension by drops of all radii beside that of the flat interface."""
        flat = verdicts.get(f"flat, G = {DROP}")
        drops = [each for label, each in verdicts.items() if "drop" in label]
        if flat is None or len(drops) < 2:
            return []
        radius, jump = np.array([[f.found for f in each.findings[:2]] for each in drops]).T
        slope, sigma = np.polyfit(1 / radius, jump, 1)
        return [
            Finding(
                "sigma of drops over flat interface", sigma / flat.findings[2].found, 0.95, 1.05
            ),
            Finding("d in cells", -slope / sigma, -2, 2),
        ]


def densities(G: float) -> tuple[float, float]:
    """Vapour and liquid beside a flat interface."""
    table = read_table("shan_chen_coexistence.csv")
    row = table[np.argmin(abs(table["G"] - G))]
    return float(row["rho_v"]), float(row["rho_l"])


VALIDATION = ShanChenPhases()

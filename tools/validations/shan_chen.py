"""One fluid with two phases: densities, Laplace's law, drops on walls."""

import h5py
import numpy as np

from validations import Finding, Validation, Variant, Verdict, read_table, tables
from validations.shan_chen_pair import contact_angle

STRENGTHS = (-4.2, -4.5, -4.8, -5.0)
RADII = {False: (14, 18, 24), True: (16, 24, 32, 48)}
DROP = -5.0
WETTING = -4.5
SHOWN = {45: 1.09, 90: 0.726, 135: 0.467}  # the density that walls show


class ShanChenPhases(Validation):
    """Flat interfaces against Shan 2008 (mechanical equilibrium), drops against Laplace's law.

    Densities of a flat interface: liquid within 2 %, vapour within 3 % of the formula. Drops: the
    jump of the pressure is dp R = sigma (1 - d/R) with d as long as the interface is thick; the
    fitted sigma is held against that of the flat interface,
    sigma = -(G cs4 / 2) sum (psi(y + 1) - psi(y))^2.

    Angles at G = -4.5, of a circle through where rho is the mean of both phases from the fourth
    cell on, within 3 degrees of what the `wetting` was measured to give: on half-way walls, half
    discs of 20 cells 44.0, 90.4, 136.4 degrees, of 40 cells 43.8, 88.7, 132.7.
    """

    def variants(self, full):
        """Flat interfaces at several G, drops of several radii, angles at two kinds of walls."""
        flat = {f"flat, G = {G}": Variant(self._flat(G, 256 if full else 96)) for G in STRENGTHS}
        drops = {f"drop, R = {R}": Variant(self._drop(R, full)) for R in RADII[full]}
        return (
            flat
            | drops
            | {
                f"{wall}, {angle} degrees": Variant(self._angle(wall, shown, full))
                for wall in ("bounce_back", "full_way")
                for angle, shown in SHOWN.items()
            }
        )

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

    def _angle(self, wall, shown, full):
        (vapour, liquid), R = densities(WETTING), 40 if full else 20
        shape = f"(1 - tanh((sqrt((x - nx/2)**2 + y**2) - {R})/2))/2"
        faces = [{"name": wall, "where": ["y-"], "wetting": {"fluid": shown}}]
        faces.append({"name": "bounce_back", "where": ["y+"]})
        found = self._tables(
            WETTING, [6 * R, 5 * R // 2], f"{vapour} + {liquid - vapour}*{shape}", 10 * R**2
        )
        found["domain"]["periodic"] = [True, False]
        return found | {"boundary": faces}

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
        """Densities; the surface tension by the profile, or by Laplace's law; the angle."""
        G = run.tables["coupling"]["G"]
        with run.snapshot() as snapshot, h5py.File(snapshot.path) as file:
            cells = file["VTKHDF/CellData"]
            rho, u, p = (cells[name][0].astype(float) for name in ("rho", "u", "pressure"))
        vapour, liquid = densities(G)
        speed = Finding("spurious velocity", np.linalg.norm(u, axis=-1).max())
        if "degrees" in run.label:
            wanted = float(run.label.partition(", ")[2].split()[0])
            angle = contact_angle(rho - (vapour + liquid) / 2)
            return Verdict([Finding("contact angle", angle, wanted - 3, wanted + 3), speed])
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

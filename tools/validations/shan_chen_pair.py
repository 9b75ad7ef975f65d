"""Two fluids that repel each other: contact angles, two layers between walls."""

from typing import ClassVar

import h5py
import numpy as np

from validations import Finding, Validation, Variant, Verdict, changed, tables

G = 2.4
MAIN, DISSOLVED = 0.964, 0.128  # beside a flat interface
SHOWN = {45: 1.22, 90: 0.085, 135: -1.0}  # (rho_oil - rho_water) / ((MAIN - DISSOLVED) / 2)
NU = {"oil": 1 / 24, "water": 1 / 6}


class ShanChenPair(Validation):
    """Drops on walls against the angle measured for their `wetting`, two layers.

    Angles, within 3 degrees, of a circle through the interface from the fourth cell on. Walls show
    as much fluid as there is, of which d = (rho_oil - rho_water) / ((MAIN - DISSOLVED) / 2) says
    how much more is oil; what d gives an angle was measured on half-way walls, with half discs of
    20 cells as here: cos = 0.65 d - 0.05. With 30 cells these d give 89.2 and 132.3 degrees; large
    drops tend to cos = 0.62 d. `--full`: 60 cells, cos = 0.62 d - 0.03.

    Poiseuille: the L2 error of u_x beside Januszewski & Kostur 2014, (21), with rho nu = rho_oil
    nu_oil + rho_water nu_water of the densities in the middle of each layer, within 5 %.
    """

    axes: ClassVar[dict] = {"u_x": ("y from the middle (cells)", "u_x (cells/step)")}
    theory = "exact, Januszewski & Kostur 2014, (21)"

    def variants(self, full):
        """Angles at two kinds of walls, the layers."""
        found = {}
        for wall in ("bounce_back", "full_way"):
            for angle, d in SHOWN.items():
                d = (np.cos(np.radians(angle)) + 0.03) / 0.62 if full else d
                tables = self._angle(wall, float(d), 60 if full else 20)
                found[f"{wall}, {angle} degrees"] = Variant(tables)
        return found | {"Poiseuille": Variant(self._layers(256 if full else 64))}

    def _tables(self, size, oil, steps, viscosity, boundary, force=None):
        total, jump = MAIN + DISSOLVED, MAIN - DISSOLVED
        fluids = []
        for label, sign in (("oil", "+"), ("water", "-")):
            rho = f"{total / 2} {sign} {jump / 2}*({oil})"
            fluids.append({"label": label, "viscosity": viscosity[label], "initial": {"rho": rho}})
            if force:
                fluids[-1]["force"] = {"name": "guo", "value": [force, 0]}
        fields = ["rho", "u", "rho_oil", "rho_water"]
        return changed(
            tables("spinodal3d"),
            {
                "lattice": {"name": "D2Q9"},
                "domain": {"size": size, "periodic": [True, False]},
                "coupling": {"name": "shan_chen", "psi": "rho", "G": G},
                "fluid": fluids,
                "precision": {"compute": "float64", "storage": "float64"},
                "boundary": boundary,
                "run": {"steps": steps},
                "output": [{"name": "snapshot", "every": steps, "fields": fields}],
            },
        )

    def _angle(self, wall, d, R):
        jump = d * (MAIN - DISSOLVED) / 4
        shown = {"oil": (MAIN + DISSOLVED) / 2 + jump, "water": (MAIN + DISSOLVED) / 2 - jump}
        faces = [
            {"name": wall, "where": ["y-"], "wetting": shown},
            {"name": "bounce_back", "where": ["y+"]},
        ]
        oil = f"tanh(({R} - sqrt((x - nx/2)**2 + y**2))/1.5)"
        viscosity = dict.fromkeys(NU, 1 / 6)
        return self._tables([6 * R, 5 * R // 2], oil, 30 * R**2, viscosity, faces)

    def _layers(self, n):
        oil = f"tanh(({n / 4} - abs(y - ny/2))/1.5)"
        faces = [{"name": "bounce_back", "where": ["y-", "y+"]}]
        return self._tables([4, n], oil, 30 * n**2, NU, faces, push(n) / 2)

    def judge(self, run):
        """Judge by the kind of the run, which its label contains."""
        with run.snapshot() as snapshot, h5py.File(snapshot.path) as file:
            cells = file["VTKHDF/CellData"]
            u, oil, water = (cells[f][0].astype(float) for f in ("u", "rho_oil", "rho_water"))
        if run.label == "Poiseuille":
            return self._judge_layers(u[:, 0, 0], oil[:, 0], water[:, 0])
        wanted = float(run.label.partition(", ")[2].split()[0])
        return Verdict(
            [Finding("contact angle", contact_angle(oil - water), wanted - 3, wanted + 3)]
        )

    def _judge_layers(self, u, oil, water):
        n = len(u)
        y, L = np.arange(n) + 0.5 - n / 2, n / 2
        mu = NU["oil"] * oil + NU["water"] * water
        outer, inner = mu[n // 8], mu[n // 2]
        half = crossing((oil - water)[n // 2 :]) + 0.5
        exact = push(n) / 2 * np.where(
            abs(y) > half,
            (L**2 - y**2) / outer,
            (L**2 - half**2) / outer + (half**2 - y**2) / inner,
        )  # fmt: skip
        error = np.linalg.norm(u - exact) / np.linalg.norm(exact)
        curves = {"u_x across": (y, u), "u_x across, exact": (y, exact)}
        found = [Finding("L2 error of u_x", error, high=0.05), Finding("mu ratio", outer / inner)]
        return Verdict([*found, Finding("interface over L", half / L)], curves)


def push(n: int) -> float:
    """The force per volume."""
    return 0.02 * 8 / (30 * n**2)


def contact_angle(phi, first: int = 4) -> float:
    """Degrees, of the circle w^2 + (y - y_0)^2 = R^2 through where phi falls through 0 in each row.

    Rows below `first` hold what the wall gathers, the two at the top touch the drop alone.
    """
    middle = phi.shape[1] // 2
    top = int(np.argmax(phi[first:, middle] < 0)) + first
    y = np.arange(first, top - 2) + 0.5
    width = np.array([crossing(row[middle:]) + 0.5 for row in phi[first : top - 2]])
    slope, rest = np.polyfit(y, width**2 + y**2, 1)
    return float(np.degrees(np.arccos(-slope / 2 / np.sqrt(rest + slope**2 / 4))))


def crossing(line) -> float:
    """The distance from the first cell's centre at which a line of cells crosses zero."""
    k = int(np.argmax(line < 0))
    return k - 1 + line[k - 1] / (line[k - 1] - line[k])


VALIDATION = ShanChenPair()

"""Separation of two mixed fluids: the size of their domains over time."""

from typing import ClassVar

import h5py
import numpy as np

from validations import Finding, Validation, Variant, Verdict, tables

FRAMES = 40
# waves of many lengths and directions, alike in both fluids but for the sign
STIR = (
    "0.01*sin(22*pi*x/nx + 9*sin(14*pi*y/ny) + 5*sin(6*pi*(x/nx + y/ny)))"
    "*cos(26*pi*y/ny + 8*cos(10*pi*x/nx) + 4*sin(18*pi*(x/nx - y/ny)))"
)


class Spinodal(Validation):
    """cases/spinodal3d.toml in 2D: domains of the size L = area / length of the interface.

    L grows as a power of time; in 2D the exponent is 2/3 with flow and 1/3 with diffusion alone
    (Furukawa 1985, Phys. Rev. A 31, 1103; Lifshitz & Slyozov 1961). The exponent of one initial
    state has no limits here: domains must grow, and both fluids must conserve their mass. --full
    runs 3D, too, with L = volume / area; viscous flow alone has the exponent 1 (Siggia 1979, Phys.
    Rev. A 20, 595).
    """

    logarithmic = ("",)
    axes: ClassVar[dict] = {"L(t)": ("t (steps)", "size of the domains L (cells)")}

    def variants(self, full):
        """One box; with `full` also one in 3D."""
        found = {"D2Q9": Variant(self._box(1024 if full else 256, 40000 if full else 4000))}
        return found | ({"D3Q19": Variant(self._cube(256, 10000))} if full else {})

    def _cube(self, n, steps):
        """The case as it is; sizes are those of monitor.csv."""
        return tables(
            "spinodal3d",
            domain={"size": [n] * 3},
            run={"steps": steps},
            output=[
                {"name": "snapshot", "every": steps, "fields": ["u", "rho_oil", "rho_water"]},
                {"name": "monitor", "every": steps // FRAMES},
            ],
        )

    def _box(self, n, steps):
        fluids = [
            {"label": label, "viscosity": 1 / 6, "initial": {"rho": f"0.7 {sign} {STIR}"}}
            for label, sign in (("oil", "+"), ("water", "-"))
        ]
        return tables(
            "spinodal3d",
            lattice={"name": "D2Q9"},
            domain={"size": [n, n], "periodic": [True, True]},
            fluid=fluids,
            run={"steps": steps},
            output=[
                {
                    "name": "snapshot",
                    "every": steps // FRAMES,
                    "begin": 0,
                    "fields": ["rho_oil", "rho_water"],
                },
                {"name": "monitor", "every": steps // FRAMES},
            ],
        )

    def judge(self, run):
        """Domain sizes, the exponent from a quarter of the time on, masses."""
        t, size, last = sizes(run) if run.label == "D2Q9" else monitored(run)
        late = t >= t[-1] / 4
        power = np.polyfit(np.log(t[late]), np.log(size[late]), 1)[0]
        lost = max(
            np.ptp(run.monitor[name]) / run.monitor[name][0] for name in ("mass_oil", "mass_water")
        )
        found = [
            Finding("L at the end over L at a quarter of the time", size[-1] / size[late][0], 1.3),
            Finding("exponent from there on", power),
            Finding("largest change of a mass", lost, high=1e-5),
        ]
        return Verdict(found, {"L(t)": (t, size)}, {"rho_oil - rho_water": last})

    def lines(self, verdicts):
        """L beside 2/3 from a quarter of the time on."""
        found = {label: verdict.curves["L(t)"] for label, verdict in verdicts.items()}
        for t, size in list(found.values())[:1]:
            late = t >= t[-1] / 4
            found["t^(2/3), Furukawa 1985"] = (
                t[late],
                size[late][0] * (t[late] / t[late][0]) ** (2 / 3),
            )
        return {"L(t)": found} if found else {}


def sizes(run):
    """Times, domain sizes by faces between signs, and the last rho_oil - rho_water."""
    t, size, last = [], [], None
    for path in sorted(run.directory.glob("snapshot_*.vtkhdf"))[2:]:
        with h5py.File(path) as file:
            cells = file["VTKHDF/CellData"]
            last = cells["rho_oil"][0].astype(float) - cells["rho_water"][0]
        t.append(int(path.stem.split("_")[-1]))
        size.append(domain_size(last))
    return np.array(t, float), np.array(size), last


def monitored(run):
    """The same by the monitor's area of the interface; of the last state the middle plane."""
    rows = run.monitor[2:]
    rows = rows[rows["interface_length"] > 0]  # once there are interfaces
    with run.snapshot() as snapshot, h5py.File(snapshot.path) as file:
        cells = file["VTKHDF/CellData"]
        middle = len(cells["rho_oil"]) // 2
        last = cells["rho_oil"][middle].astype(float) - cells["rho_water"][middle]
        volume = cells["rho_oil"].size
    return rows["step"], volume / rows["interface_length"], last


def domain_size(phi) -> float:
    """Cells over the length of the lines phi = 0: pi/4 times the faces between signs."""
    faces = sum(np.count_nonzero((phi > 0) != np.roll(phi > 0, 1, axis)) for axis in (0, 1))
    return phi.size / (np.pi / 4 * max(faces, 1))


VALIDATION = Spinodal()

"""A binary fluid by its free energy: Laplace's law, contact angles, two layers between walls."""

from typing import ClassVar

import h5py
import numpy as np

from validations import Finding, Validation, Variant, Verdict, changed, tables

A, KAPPA = 0.02, 0.08
WIDTH = np.sqrt(2 * KAPPA / A)
ANGLES = (45, 90, 135)
MEANS, NU = ("harmonic", "linear"), ((0.02, 0.2), (0.2, 0.02))
RADII = {False: (20,), True: (20, 32, 48)}  # in 3D


class FreeEnergyFlows(Validation):
    """Drops against sqrt(8 kappa a / 9), drops on walls against the given angle, two layers.

    Laplace: dp R in 2D, dp R / 2 in 3D, within 2 %. The tension of a flat interface on the lattice
    is 1 - a / (12 kappa) times the formula; therefore kappa / a = R / 4, at most 8. With this
    factor, and with the pressure in the middle of the drop, which differs slightly from the bulk,
    the ratios in equilibrium are 0.986, 0.992, 0.994 in 2D, 0.983 at R = 20, 0.990 at R = 32 and 48
    in 3D.

    Layers: nu = 0.02 and 0.2 with an interface of several cells, for each mean of the viscosities;
    the L2 error of u_x relative to the solution with sharp interfaces is, within 0.01, that of the
    exact solution for the profile of the interface.

    Angles: those of the circle through the top of the drop and its ends at the wall (phi = 0),
    within 3 degrees. Poiseuille: the L2 error of u_x relative to Januszewski & Kostur 2014, (21),
    is at most 2 %; nu = 1/6 at the walls and 1/24 between.
    """

    axes: ClassVar[dict] = {"u_x": ("y from the middle (cells)", "u_x (cells/step)")}
    theory = "exact, Januszewski & Kostur 2014, (21)"

    def variants(self, full):
        """Drops of several radii, angles at two kinds of walls, the layers."""
        radii = (16, 24, 32) if full else (16, 24)
        found = {f"2D drop, R = {R}": Variant(self._drop(2, R, 20 * R**2)) for R in radii}
        rounds = 10 if full else 5
        for R in RADII[full]:
            found[f"3D drop, R = {R}"] = Variant(self._drop(3, R, rounds * R**2))
        for wall in ("bounce_back", "full_way"):
            for angle in ANGLES:
                found[f"{wall}, {angle} degrees"] = Variant(self._angle(wall, angle, full))
        for mean in MEANS:
            for inner, outer in NU:
                label = f"layers, {mean}, nu = {inner}, {outer}"
                found[label] = Variant(self._wide_layers(mean, inner, outer))
        return found | {"Poiseuille": Variant(self._layers(full))}

    def _tables(self, size, phi, steps, periodic, boundary=None, **changes):
        fluids = [
            {"label": label, "viscosity": 1 / 6, "initial": {"rho": f"0.5 {s} 0.499999*({phi})"}}
            for label, s in (("oil", "+"), ("water", "-"))
        ]
        fields = ["rho", "u", "phi", "pressure"]
        return changed(
            tables(
                "free_energy_drop2d",
                lattice={"name": "D2Q9" if len(size) == 2 else "D3Q19"},
                domain={"size": size, "periodic": periodic},
                coupling={"a": A, "kappa": KAPPA},
                fluid=fluids,
                precision={"compute": "float64", "storage": "float64"},
                boundary=boundary,
                run={"steps": steps},
                output=[{"name": "snapshot", "every": steps, "fields": fields}],
            ),
            changes,
        )

    def _drop(self, D, R, steps):
        """In both phases phi is d = (D - 1) sigma / (4 a R) higher, as mu asks for.

        By diffusion it would take R^2 / (2 a mobility) steps to be so. Sound falls by exp(-2 pi^2
        steps / (3 n^2)) in a box of n cells.
        """
        n, kappa = (4 if D == 2 else 3) * R, A * min(R / 4, 8)  # beyond 8 waves of phi grow
        width, d = np.sqrt(2 * kappa / A), (D - 1) * tension(kappa) / (4 * A * R)
        r = f"sqrt({' + '.join(f'({x} - n{x}/2)**2' for x in 'xyz'[:D])})"
        found = self._tables([n] * D, "0", steps, [True] * D, coupling={"kappa": kappa})
        for fluid, sign in zip(found["fluid"], "+-", strict=True):
            phi = f"{d} + tanh(({R} - {r})/{width})"
            fluid["initial"] = {"rho": f"0.55 {sign} 0.5*({phi})"}
        return found

    def _angle(self, wall, angle, full):
        R = 48 if full else 24
        phi = f"tanh(({R} - sqrt((x - nx/2)**2 + y**2))/{WIDTH})"
        faces = [{"name": wall, "where": ["y-"], "wetting": {"angle": angle}}]
        faces.append({"name": "bounce_back", "where": ["y+"]})
        size, steps = [6 * R, 5 * R // 2], 200000 if full else 30000
        return self._tables(size, phi, steps, [True, False], faces)

    def _layers(self, full):
        n = 256 if full else 128
        phi = f"tanh(({n / 4} - abs(y - ny/2))/0.25)"
        faces = [{"name": "bounce_back", "where": ["y-", "y+"]}]
        steps = round(30 * n**2)  # (n/2)^2 / nu of the slower layer is 6 n^2
        found = self._tables([4, n], phi, steps, [True, False], faces)
        found["fluid"][0]["viscosity"] = 1 / 24
        found["coupling"] |= {"a": 32e-4, "kappa": 1e-4, "gamma": 25.0}  # as in the paper, 5.3
        for fluid in found["fluid"]:
            fluid["force"] = {"name": "guo", "value": [self._push(n), 0]}
        return found

    def _wide_layers(self, mean, inner, outer):
        n, kappa = 64, 0.004
        phi, steps = f"tanh(({n / 4} - abs(y - ny/2))/{WIDTH})", round(n**2 / min(inner, outer))
        faces = [{"name": "bounce_back", "where": ["y-", "y+"]}]
        found = self._tables([4, n], phi, steps, [True, False], faces)
        found["coupling"] |= {"a": 2 * kappa / WIDTH**2, "kappa": kappa, "viscosity_mean": mean}
        push = 0.01 / two_fluids(n, inner, outer).max()
        for fluid, nu in zip(found["fluid"], (inner, outer), strict=True):
            fluid["viscosity"] = nu
            fluid["force"] = {"name": "guo", "value": [push, 0]}
        return found

    @staticmethod
    def _push(n):
        return 0.02 / (15 * (n / 2) ** 2 / 2)  # 0.02 in the middle, see `layers`

    def judge(self, run):
        """Judge by the kind of the run, which its label contains."""
        with run.snapshot() as snapshot, h5py.File(snapshot.path) as file:
            cells = file["VTKHDF/CellData"]
            u, phi, p = (cells[name][()].astype(float) for name in ("u", "phi", "pressure"))
        if "drop" in run.label:
            kappa = run.tables["coupling"]["kappa"]
            return self._judge_drop(u, phi, p, 3 if "3D" in run.label else 2, tension(kappa))
        if run.label.startswith("layers"):
            return self._judge_wide_layers(run.tables, u[0, :, 0, 0])
        if run.label == "Poiseuille":
            return self._judge_layers(u[0, :, 0, 0])
        angle = contact_angle(phi[0])
        wanted = float(run.label.partition(", ")[2].split()[0])
        return Verdict([Finding("contact angle", angle, wanted - 3, wanted + 3)])

    def _judge_drop(self, u, phi, p, D, formula):
        middle, corner = tuple(n // 2 for n in phi.shape), (0, 0, 0)
        share = (phi - phi[corner]) / (phi[middle] - phi[corner])
        size = share.sum()
        radius = np.sqrt(size / np.pi) if D == 2 else np.cbrt(3 * size / (4 * np.pi))
        found = (p[middle] - p[corner]) * radius / (D - 1)
        speed = np.linalg.norm(u, axis=-1).max()
        return Verdict([
            Finding("tension over sqrt(8 kappa a/9)", found / formula, 0.98, 1.02),
            Finding("spurious velocity", speed),
        ])  # fmt: skip

    def _judge_layers(self, u):
        n = len(u)
        y = (np.arange(n) + 0.5) - n / 2
        exact = layers(y, n / 2, self._push(n))
        error = np.linalg.norm(u - exact) / np.linalg.norm(exact)
        curves = {"u_x across": (y, u), "u_x across, exact": (y, exact)}
        return Verdict([Finding("L2 error of u_x", error, high=0.02)], curves)

    def _judge_wide_layers(self, tables, u):
        coupling = tables["coupling"]
        mean, width = coupling["viscosity_mean"], np.sqrt(2 * coupling["kappa"] / coupling["a"])
        inner, outer = (fluid["viscosity"] for fluid in tables["fluid"])
        push = tables["fluid"][0]["force"]["value"][0]
        exact, diffuse = (
            push * two_fluids(len(u), inner, outer, *more) for more in ((), (width, mean))
        )
        y = np.arange(len(u)) + 0.5 - len(u) / 2
        of = [np.linalg.norm(each - exact) / np.linalg.norm(exact) for each in (u, diffuse)]
        curves = {"u_x across": (y, u), "u_x across, exact": (y, exact)}
        return Verdict([Finding("L2 error of u_x", of[0], of[1] - 0.01, of[1] + 0.01)], curves)


def two_fluids(n, inner, outer, width=1e-9, mean="harmonic"):
    """u in the cells for a force of 1 and the profile tanh(y / width); `inner`: the middle half."""
    fine = 40
    y = (np.arange(n * fine) + 0.5) / fine - n / 2
    s = (1 + np.tanh((n / 4 - abs(y)) / width)) / 2
    power = 1 if mean == "linear" else -1
    nu = (s * inner**power + (1 - s) * outer**power) ** power
    return -np.cumsum(y / nu)[fine // 2 - 1 :: fine] / fine


def tension(kappa):
    """The surface tension of the formula."""
    return np.sqrt(8 * kappa * A / 9)


def layers(y, L, G):
    """Januszewski & Kostur 2014, (21): nu_0 = 1/6 beyond L/2, nu_1 = 1/24 within, rho = 1."""
    outer = 3 * G * (L**2 - y**2)
    inner = G * L**2 / 8 * (18 + 24 * (1 - 4 * y**2 / L**2))
    return np.where(abs(y) > L / 2, outer, inner)


def contact_angle(phi) -> float:
    """Degrees, of a circle as high and as wide at the wall (y = 0) as where phi > 0."""
    height = crossing(phi[:, phi.shape[1] // 2])
    row = phi[0] + (phi[0] - phi[1]) / 2  # at the wall, half a cell below the first centres
    middle = len(row) // 2
    width = (crossing(row[middle:]) - 0.5) + (crossing(row[:middle][::-1]) - 0.5) + 1
    return float(np.degrees(2 * np.arctan2(height, width / 2)))


def crossing(line) -> float:
    """The distance from the start of a line of cells at which phi crosses zero."""
    k = int(np.argmax(line < 0))
    return k - 0.5 + line[k - 1] / (line[k - 1] - line[k])


VALIDATION = FreeEnergyFlows()

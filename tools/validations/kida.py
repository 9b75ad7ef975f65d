"""Kida vortex: energy balance, spectrum, and stability of collisions on coarse grids."""

import time
from contextlib import contextmanager
from typing import ClassVar

import h5py
import numpy as np
from spectral_balance import spectrum, sums

from mpilbm.core.registry import register
from mpilbm.outputs import Output, number_of_cells
from mpilbm.outputs.snapshot import Snapshot
from mpilbm.parallel import on_root
from mpilbm.run.progress import say
from mpilbm.storage.csv_log import Rows
from validations import (
    Finding,
    Validation,
    Variant,
    Verdict,
    cite,
    collisions,
    quick_logarithms,
    tables,
)

SPEED = 0.05
LES = {"name": "bgk", "closure": {"name": "smagorinsky", "constant": 0.1}}
RESOLVED = 0.85  # cells in a Kolmogorov length
PARTS = 40  # of a unit of time: from one energy of the balance to the next


class Kida(Validation):
    """Januszewski & Kostur 2014, figure 13: kinetic energy and enstrophy over time, a spectrum.

    At the lowest Reynolds number the energy balance must hold for every collision,

        -dE/dt = 2 nu Z - cs2 <(rho - 1) div u>

    Its mean and its largest error are at most 2 % while the Kolmogorov length (nu^2 / 2 Z)^(1/4) is
    0.85 cells or more, from t = 0.25 (earlier, initial sound waves dominate dE/dt) to 4. Enstrophy
    Z and the work of the pressure, of the order of Mach^2, are computed by Fourier transforms,
    since central differences lose (k h)^2 / 3 of a wave k. At 12 800 and 128 000 the stable
    collisions are reported; entropic and Smagorinsky must be stable. The paper uses 350^3 and 700^3
    cells; --full uses 350^3, otherwise 64^3 at a tenth of the Reynolds numbers. The spectrum E(k)
    is plotted for runs that reach its time. Its shells are k - 1/2 to k + 1/2, and its sum is the
    energy (paper: k to k + 1, twice the energy). --set size, reynolds (one or a list), until (t at
    the end), spectra (t between transforms; 0: none), spectrum_at (t of E(k); 0: none).
    """

    settings: ClassVar[dict] = {
        "size": None, "reynolds": None, "until": 7.0, "spectra": 0.25, "spectrum_at": 4.0,
    }  # fmt: skip
    logarithmic = ("spectrum",)
    axes: ClassVar[dict] = {
        "kinetic energy": ("t U0 / L (1), L = side / 2 pi", "E / U0^2 (1)"),
        "enstrophy": ("t U0 / L (1), L = side / 2 pi", "Z L^2 / U0^2 (1)"),
        "spectrum": ("k L (1)", "E(k) / (U0^2 L) (1)"),
    }

    def variants(self, full):
        """Collisions and Reynolds numbers."""
        n, part = (350, 1) if full else (64, 0.1)
        n = self.settings["size"] or n
        numbers = self.settings["reynolds"] or [4000 * part, 12800 * part, 128000 * part]
        numbers = numbers if isinstance(numbers, list) else [numbers]
        kinds = {name: {"name": name} for name in collisions("D3Q19")} | {"smagorinsky": LES}
        found = {}
        for reynolds in numbers:
            balanced = reynolds == numbers[0]
            for name, collision in kinds.items():
                sure = balanced or name in ("entropic", "smagorinsky")
                found[f"{name} Re {reynolds:g}"] = Variant(
                    self._tables(n, reynolds, collision, balanced) | quick_logarithms(name, full),
                    True if sure else None,
                )
        return found

    def _tables(self, n, reynolds, collision, balanced):
        every = round(n / (2 * np.pi) / SPEED / PARTS)
        apart = round(self.settings["spectra"] * PARTS)  # energies from one transform to the next
        balance = {"name": "energy_balance", "every": every, "apart": apart}
        at = every * round(self.settings["spectrum_at"] * PARTS)
        waves = {"name": "kida_spectrum", "every": at}
        return tables(
            "kida",
            domain={"size": [n] * 3},
            fluid={"reynolds": reynolds, "length": n, "velocity": SPEED},
            collision=collision,
            layout={"name": "esopull"},
            initial={"iterate": 3 * n},  # otherwise half of the first changes are sound waves
            run={"steps": every * round(self.settings["until"] * PARTS)},
            output=[{"name": "monitor", "every": 2 * every}]
            + [waves] * (at > 0)
            + [balance] * (balanced and apart > 0),
        )

    def judge(self, run):
        """The balance of energy until t = 4, the peak of the enstrophy."""
        rows, fluid = run.monitor, run.tables["fluid"]
        n = fluid["length"]
        time = rows["step"] * SPEED * 2 * np.pi / n
        energy = rows["kinetic_energy"] / n**3
        enstrophy = rows["enstrophy"] / n**3
        peak = enstrophy.argmax()
        unit = (n / (2 * np.pi) / SPEED) ** 2
        label = f"Re = {fluid['reynolds']:g}"
        verdict = Verdict([
            *self._balance(run),
            Finding("peak of enstrophy by differences", enstrophy[peak] * unit),
            Finding("its time", time[peak]),
        ])  # fmt: skip
        verdict.curves[f"kinetic energy, {label}"] = time, energy / SPEED**2
        verdict.curves[f"enstrophy, {label}"] = time, enstrophy * unit
        path = run.directory / "kida_spectrum.csv"
        if path.exists():
            k, E = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
            dk = 2 * np.pi / n
            shown = (k < np.pi) & (E / E.max() > 1e-12)  # whole shells, not empty by symmetry
            verdict.curves[f"spectrum, {label}"] = k[shown] / dk, E[shown] * dk / SPEED**2
        return verdict

    def published(self, panel):
        """The exact initial values, and the slope of the inertial range."""
        if panel.startswith("spectrum"):
            k = np.array([8.0, 80.0])
            return {"~k^(-5/3), Kolmogorov 1941": (k, 0.4 * k ** (-5 / 3))}
        start = 0.375 if panel.startswith("kinetic") else 4.125
        source = f"{cite('kida_vortex_exact_initial_values.csv')}, exact at t = 0"
        return {source: (np.zeros(1), np.array([start]))}

    def _balance(self, run):
        """Deviations from the law."""
        path = run.directory / "energy_balance.csv"
        if run.tables["output"][-1]["name"] != "energy_balance":
            return []
        rows = np.atleast_1d(np.genfromtxt(path, delimiter=",", names=True))
        rows = rows[(rows["t"] > 0.24) & (rows["t"] < 4.01)]
        found = [Finding("transforms", rows.size, 1)]
        fluid = run.tables["fluid"]
        nu = SPEED * fluid["length"] / fluid["reynolds"]
        highest = run.monitor["enstrophy"].max() / fluid["length"] ** 3
        eta = (nu**2 / (2 * highest)) ** 0.25
        allowed = 0.02 if eta >= RESOLVED else np.inf
        if rows.size:
            whole, without = rows["deviation"], rows["without_pressure"]
            found += [
                Finding(
                    "-dE/dt over what the flow loses, less 1, mean", whole.mean(), -allowed, allowed
                ),
                Finding("the same, largest", np.abs(whole).max(), 0, allowed),
                Finding("Kolmogorov length in cells", eta),
                Finding("without the pressure's work, mean", without.mean()),
                Finding("the same, largest", np.abs(without).max()),
            ]
        return found


@contextmanager
def passing(context, step):
    """The fields of the snapshot of a step, on rank 0; the file is removed at the end."""
    path = context.directory / f"snapshot_{step:09d}.vtkhdf"
    with h5py.File(path) as file:
        yield file["VTKHDF/CellData"]
    path.unlink()


@register("outputs", "kida_spectrum")
class Spectrum(Output):
    """E(k) at step `every` in kida_spectrum.csv, from a snapshot of u that is removed."""

    at_start: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ("kida_spectrum.csv",)

    def disk_bytes(self, case, times):
        """One snapshot."""
        return Snapshot(every=1, fields=("u",)).disk_bytes(case, 1)

    def open(self, context):
        """Opens nothing yet."""
        return SpectrumWriter(self.every, context)


class SpectrumWriter:
    """Rank 0 transforms."""

    def __init__(self, step, context):
        self.step, self.context = step, context
        self.snapshots = Snapshot(every=1, fields=("u",), background=False).open(context)

    def write(self, step):
        """Called on all ranks."""
        if step == self.step:
            self.snapshots.write(step)
            on_root(self.context.comm, self._write, step)

    def _write(self, step):
        with passing(self.context, step) as fields:
            found = spectrum(fields["u"], self.context.case.shape[::-1])
        rows = np.stack(found, axis=1)
        path = self.context.directory / "kida_spectrum.csv"
        np.savetxt(path, rows, delimiter=",", header="k,E", comments="")

    def close(self):
        """Nothing is open."""


@register("outputs", "energy_balance")
class EnergyBalance(Output):
    """Rows of energy_balance.csv, also printed, from snapshots every `apart` times, then removed.

    -dE/dt is the central difference of the kinetic energies one `every` before and after.
    """

    apart: int

    files: ClassVar[tuple[str, ...]] = ("energy_balance.csv",)

    def disk_bytes(self, case, times):
        """One snapshot at a time."""
        return Snapshot(every=1).disk_bytes(case, 1)

    def open(self, context):
        """Creates the table."""
        return BalanceWriter(self, context)


class BalanceWriter:
    """Rank 0 transforms and writes the table."""

    def __init__(self, output, context):
        self.every, self.apart, self.context = output.every, output.apart, context
        fluid = context.case.fluids[0]
        self.nu, self.unit = fluid.viscosity, context.case.shape[0] / (2 * np.pi) / SPEED
        self.snapshots = Snapshot(every=1, background=False).open(context)
        self.energies, self.found, self.rows = {}, {}, None
        self.begin = time.perf_counter()
        on_root(context.comm, self._open)

    def _open(self):
        header = ["step", "t", "energy", "loss", "enstrophy", "by_differences", "work",
                  "deviation", "without_pressure"]  # fmt: skip
        path = self.context.directory / "energy_balance.csv"
        self.rows = Rows(path, header, self.context.first_step)

    def write(self, step):
        """Called on all ranks."""
        if step % self.every:
            return
        totals = self.context.totals.start(step)()
        due = step > 0 and step // self.every % self.apart == 0
        if due:
            self.snapshots.write(step)
        on_root(self.context.comm, self._write, step, totals, due)

    def _write(self, step, totals, due):
        cells = number_of_cells(self.context.case)
        self.energies[step] = totals["kinetic_energy"] / cells
        if due:
            with passing(self.context, step) as fields:
                self.found[step] = sums(fields["u"], fields["rho"])
            self.found[step]["by_differences"] = totals["enstrophy"] / cells
        middle = step - self.every
        if middle in self.found:
            self._row(middle, self.found.pop(middle))

    def _row(self, step, found):
        """In units of the box 2 pi and the speed 1."""
        before, after = (self.energies[step + side * self.every] for side in (-1, 1))
        loss = (before - after) / (2 * self.every)
        spent = 2 * self.nu * found["enstrophy"]
        work = found["work"] / 3  # cs2
        rate, turn = self.unit / SPEED**2, self.unit**2
        t, deviation, without = step / self.unit, loss / (spent - work) - 1, loss / spent - 1
        enstrophies = found["enstrophy"] * turn, found["by_differences"] * turn
        values = t, self.energies[step] / SPEED**2, loss * rate, *enstrophies, work * rate
        self.rows.add(step, (*values, deviation, without))
        say(
            self.context.comm,
            f"t = {t:.3f}: -dE/dt {loss * rate:.5f}, Z {enstrophies[0]:.4f} (by differences "
            f"{enstrophies[1]:.4f}); over the law, less 1: {deviation:+.4f}, without the work of "
            f"the pressure {without:+.4f}; {time.perf_counter() - self.begin:.0f} s",
        )

    def close(self):
        """Close the table."""
        if self.rows is not None:
            self.rows.close()


VALIDATION = Kida()

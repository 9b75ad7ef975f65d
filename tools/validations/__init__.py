"""Flows with known solutions: each module has a case, its variants and the expected results."""

import copy
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from mpilbm.core.registry import find, names
from mpilbm.view.plot.profiles import cited
from mpilbm.view.results.snapshot import view

CASES = Path(__file__).parents[2] / "cases"
REFERENCE = CASES / "reference"


@dataclass(frozen=True)
class Finding:
    """A figure and its limits: `low` <= found <= `high`."""

    name: str
    found: float
    low: float = -np.inf
    high: float = np.inf

    @property
    def good(self) -> bool:
        """Whether the figure is within its limits; NaN is not."""
        return bool(self.low <= self.found <= self.high)

    def __str__(self):
        bounds = {
            (False, True): f"at most {self.high:.4g}",
            (True, False): f"at least {self.low:.4g}",
            (True, True): f"{self.low:.4g} to {self.high:.4g}",
        }.get((np.isfinite(self.low), np.isfinite(self.high)), "any value")
        return f"{self.name}: {self.found:.4g} (allowed: {bounds})"


@dataclass(frozen=True)
class Variant:
    """Tables of a case.

    `finite`: whether the flow must remain finite (True), must not (False), or may (None).
    `start`: the label of the run from whose last snapshot it starts.
    """

    tables: dict
    finite: bool | None = True
    start: str | None = None


@dataclass(frozen=True)
class Finished:
    """A run that has ended: at its last step, or when it was no longer `finite`."""

    label: str
    tables: dict
    directory: Path
    finite: bool
    seconds: float

    @property
    def monitor(self) -> np.ndarray:
        """Rows of monitor.csv by column name."""
        return np.genfromtxt(self.directory / "monitor.csv", delimiter=",", names=True)

    def forces(self, label: str) -> np.ndarray:
        """Rows of forces_<label>.csv by column name, without units."""
        path = self.directory / f"forces_{label}.csv"
        columns = [
            name.split()[0] for name in path.read_text("utf-8").partition("\n")[0].split(",")
        ]
        return np.genfromtxt(path, delimiter=",", names=columns, skip_header=1)

    def snapshot(self):
        """The last snapshot, opened (a context manager, see View)."""
        return view(sorted(self.directory.glob("snapshot_*.vtkhdf"))[-1])


Curve = tuple[np.ndarray, np.ndarray]


@dataclass
class Verdict:
    """The results of a run: figures; curves and images (rows, columns) by title of the panel."""

    findings: list[Finding] = field(default_factory=list)
    curves: dict[str, Curve] = field(default_factory=dict)
    images: dict[str, np.ndarray] = field(default_factory=dict)


class Validation:
    """The docstring states what is compared with what; `reference` returns curves for the plot.

    `full`: the size for a GPU; otherwise one that two CPU cores compute in minutes. `settings`: the
    keys of --set with their defaults (None: depends on `full`).
    """

    settings: ClassVar[dict] = {}

    def variants(self, full: bool) -> dict[str, Variant]:
        """The cases to run, by label."""
        raise NotImplementedError

    def judge(self, run: Finished) -> Verdict:
        """Compare a run that stayed finite."""
        raise NotImplementedError

    def together(self, verdicts: dict[str, Verdict]) -> list[Finding]:
        """Findings that need several runs."""
        return []

    # names and units of the axes (x, y) by the beginning of the title of a panel
    axes: ClassVar[dict[str, tuple[str, str]]] = {}
    theory: ClassVar[str] = "exact"  # the source of curves whose label ends with ", exact"
    logarithmic: ClassVar[tuple[str, ...]] = ()  # beginnings of titles of panels with such axes
    logarithmic_y: ClassVar[tuple[str, ...]] = ()  # the same for y only; values above 0 are shown

    def lines(self, verdicts: dict[str, Verdict]) -> dict[str, dict[str, Curve]]:
        """Curves through several runs: by panel, then by label."""
        return {}

    def reference(self) -> dict[str, Curve]:
        """Published curves by panel."""
        return {}

    def source(self, panel: str) -> str:
        """Authors and year of the published curve in a panel."""
        return "published"

    def published(self, panel: str) -> dict[str, Curve]:
        """Published curves in a panel by their source; as a dashed line if that begins with ~."""
        known = self.reference()
        return {self.source(panel): known[panel]} if panel in known else {}

    def bands(self, panel: str) -> dict[str, tuple[float, float]]:
        """Published intervals of y in a panel by their source."""
        return {}

    def axes_of(self, panel: str) -> tuple[str, str]:
        """Names and units of the axes of a panel."""
        found = [key for key in self.axes if panel.startswith(key)]
        return self.axes[max(found, key=len)]


def tables(name: str, **changes) -> dict:
    """The tables of a case in cases/, with some of their keys changed."""
    return changed(tomllib.loads((CASES / f"{name}.toml").read_text("utf-8")), changes)


def changed(old: dict, changes: dict) -> dict:
    """A copy with some keys of tables replaced; tables with a `name` are replaced as a whole."""
    new = copy.deepcopy(old)
    for key, value in changes.items():
        keeps = isinstance(value, dict) and isinstance(new.get(key), dict) and "name" not in value
        new[key] = changed(new[key], value) if keeps else value
    return new


def read_table(name: str) -> np.ndarray:
    """A CSV file of cases/reference by column name."""
    lines = (REFERENCE / name).read_text("utf-8").splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    return np.genfromtxt(rows, delimiter=",", names=True)


def cite(name: str) -> str:
    """Authors and year of a file of cases/reference."""
    return cited(REFERENCE / name)


def collisions(lattice: str) -> list[str]:
    """Names of the collisions that are defined on a lattice."""
    own = find("lattices", lattice)
    kinds = {name: find("collisions", name) for name in names("collisions")}
    return [
        name
        for name, kind in kinds.items()
        if (lattice in kind.lattices if kind.lattices else own.isotropy >= kind.needs_isotropy)
    ]


def quick_logarithms(collision: str, full: bool) -> dict:
    """Tables for fast logarithms of a collision on a GPU."""
    return {"precision": {"intrinsics": True}} if full and collision == "entropic" else {}

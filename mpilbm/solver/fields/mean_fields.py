"""The means and Reynolds stresses of cells, computed by the device from their sums."""

from math import prod

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.physics.algebra import pairs
from mpilbm.solver.fields.flow_statistics import Statistics
from mpilbm.solver.fields.staging import Sizes


def components(D: int) -> dict[str, tuple[int, ...]]:
    """The fields of a profile, and their shape at a place."""
    return {"rho": (), "u": (D,), "reynolds_stress": (len(pairs(D)),)}


def plane_bytes(D: int, cells: int) -> int:
    """Bytes of the fields of a plane of so many cells."""
    return 8 * cells * sum(map(prod, components(D).values()))


class MeanFields:
    """rho, u and Reynolds stresses of cells, a Source of a Staging; not a number in solids.

    With n samples, their sums s, and the shift,

        mean = shift + s / n        <u_a' u_b'> = (s_ab - n (s_a / n) (s_b / n)) / n
    """

    def __init__(self, statistics: Statistics):
        self.statistics, self.places = statistics, statistics.places
        self.components = components(statistics.shifts - 1)

    def sizes(self, planes: int) -> Sizes:
        """See Source."""
        places = planes * self.places.count
        return {name: (places * prod(shape), "f8") for name, shape in self.components.items()}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """See Source."""
        of, (start, stop) = self.statistics, (k * self.places.count for k in (begin, end))
        given = {f"{name}_out": array for name, array in arrays.items()}
        launch = of.context.bind(
            "mean_fields", step=self.places.step, start=start, samples=of.samples,
            missing=float("nan"), sums=of.sums, shift=of.shift, **given,
        )  # fmt: skip
        launch(of.context.bulk, start, stop)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """The fields, (planes, rows, nx, …)."""
        size = end - begin, self.places.rows, self.places.nx
        return {name: flat[name].reshape(*size, *part) for name, part in self.components.items()}

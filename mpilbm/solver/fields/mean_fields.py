"""Sources of a Staging for statistics: means and Reynolds stresses of cells, and their sums."""

from math import prod

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends.interfaces import Array
from mpilbm.physics.sampled import Sampled
from mpilbm.solver.fields.flow_statistics import Statistics, numbers
from mpilbm.solver.fields.staging import Sizes


def mean_sizes(sampled: Sampled, places: int) -> Sizes:
    """The arrays of the fields of so many places."""
    return {name: (places * prod(shape), "f8") for name, shape in sampled.components.items()}


def sum_sizes(sampled: Sampled, places: int, shift: DTypeLike) -> Sizes:
    """The arrays of the sums of so many places; `shift`: the type of the shifts."""
    columns, shifts = numbers(sampled.values)
    return {"sums": (places * columns, "f8"), "shift": (places * shifts, shift)}


class MeanFields:
    """rho, u and Reynolds stresses of cells, a Source of a Staging; not a number in solids.

    With n samples, their sums s, and the shift,

        mean = shift + s / n        <u_a' u_b'> = (s_ab - n (s_a / n) (s_b / n)) / n
    """

    def __init__(self, statistics: Statistics):
        self.statistics, self.places = statistics, statistics.places
        self.components = statistics.sampled.components

    def sizes(self, planes: int) -> Sizes:
        """See Source."""
        return mean_sizes(self.statistics.sampled, planes * self.places.count)

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


class KeptSums:
    """The sums and shifts of a Statistics for a checkpoint, a Source of a Staging."""

    def __init__(self, statistics: Statistics):
        self.statistics = statistics

    def sizes(self, planes: int) -> Sizes:
        """See Source."""
        of = self.statistics
        return sum_sizes(of.sampled, planes * of.places.count, of.shift.dtype)

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """See Source."""
        of = self.statistics
        for name, source in (("sums", of.sums), ("shift", of.shift)):
            of.device.copy(arrays[name], of.planes_of(source, begin, end), of.context.bulk)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """The state of these planes, see Statistics.state_of."""
        return {"sums": self.statistics.state_of(flat["sums"], flat["shift"], end - begin)}

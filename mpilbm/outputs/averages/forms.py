"""The HDF5 files of a profile: plain datasets, or VTKHDF for ParaView and PyVista."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from mpilbm.outputs.averages.profile_files import Head, describe
from mpilbm.outputs.snapshot import describe_image, place
from mpilbm.physics.lattices import AXES
from mpilbm.solver.fields.mean_fields import components
from mpilbm.storage.places import dataset
from mpilbm.units import LATTICE_UNIT, field_unit

if TYPE_CHECKING:
    import h5py

    from mpilbm.storage.planes import OwnFile


class Target(NamedTuple):
    """A dataset of a file: the field of the profile from which it is made, and how."""

    field: str
    made: Callable[[np.ndarray], np.ndarray]


class Form(Protocol):
    """A kind of file of a profile."""

    suffix: str

    def targets(self, head: Head) -> dict[str, Target]:
        """The datasets by their paths in the file."""

    def describe(self, file: "h5py.File", head: Head) -> None:
        """Create the datasets and attributes."""


class Plain:
    """Datasets (…, y, x) in lattice units, of the directions that are not averaged."""

    suffix = "h5"

    def targets(self, head: Head) -> dict[str, Target]:
        """See Form."""
        return {name: Target(name, np.asarray) for name in components(head.case.dimensions)}

    def describe(self, file: "h5py.File", head: Head) -> None:
        """See Form."""
        describe(file, head)


class Image:
    """VTKHDF ImageData with cell data rho, u and reynolds_stress_xx, …; with [units] in SI.

    An averaged direction has one cell, which is as long as the box. A vector has three components,
    also in 2D. Each component of the stress is an array of its own.
    """

    suffix = "vtkhdf"

    def targets(self, head: Head) -> dict[str, Target]:
        """See Form."""
        case, shape = head.case, self._local_shape(head)

        def scalar(name: str, k: int | None = None) -> Target:
            unit, _ = field_unit(case.units, name)
            return Target(name, lambda data: (data if k is None else data[..., k]).reshape(
                shape) * unit)  # fmt: skip

        def vector(data: np.ndarray) -> np.ndarray:
            missing = 3 - data.shape[-1]
            data = data.reshape(*shape, data.shape[-1]) * field_unit(case.units, "u")[0]
            return np.pad(data, ((0, 0), (0, 0), (0, 0), (0, missing)))

        found = {place("rho"): scalar("rho"), place("u"): Target("u", vector)}
        for k, pair in enumerate(head.pairs):
            found[place(f"reynolds_stress_{pair}")] = scalar("reynolds_stress", k)
        return found

    def _local_shape(self, head: Head) -> tuple[int, int, int]:
        """The shape of some planes; -1 for their number."""
        sizes = head.sizes
        if head.case.dimensions == 2:
            return -1, 1, sizes.get("x", 1)
        return -1, sizes.get("y", 1), sizes.get("x", 1)

    def describe(self, file: "h5py.File", head: Head) -> None:
        """See Form."""
        case = head.case
        describe_image(file, case, head.step, {})
        cells = [head.sizes.get(axis, 1) for axis in AXES[: case.dimensions]]
        cells += [1] * (3 - len(cells))
        image, whole = file["VTKHDF"], [*case.domain.size, 1][:3]
        image.attrs["WholeExtent"] = np.ravel([(0, n) for n in cells])
        image.attrs["Spacing"] = image.attrs["Spacing"] * np.divide(whole, cells)
        for path, (field, _) in self.targets(head).items():
            vector = (3,) if field == "u" else ()
            made = dataset(file, path, (*cells[::-1], *vector), np.float64)
            unit, text = field_unit(case.units, field)
            if text:
                made.attrs["unit"], made.attrs[LATTICE_UNIT] = text, unit
        origin = file["mpilbm"]
        origin.attrs["average"], origin.attrs["samples"] = list(head.average), head.samples
        origin.attrs["first_step"] = head.first


FORMS: dict[str, tuple[Form, ...]] = {
    "h5": (Plain(),),
    "vtkhdf": (Image(),),
    "both": (Plain(), Image()),
}


def store(
    file: "OwnFile", targets: dict[str, Target], begin: int, fields: dict[str, np.ndarray]
) -> None:
    """Write fields of local planes; in any thread."""
    for path, (field, made) in targets.items():
        file.store(path, begin, np.ascontiguousarray(made(fields[field])))


def put(file: "OwnFile", targets: dict[str, Target], fields: dict[str, np.ndarray]) -> None:
    """Write fields that have no planes, on rank 0; in any thread."""
    for path, (field, made) in targets.items():
        file.file.put(path, made(fields[field]).reshape(file.places[path].shape))

"""The HDF5 files of a profile: plain datasets, or VTKHDF for ParaView and PyVista."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from mpilbm.core.units import LATTICE_UNIT
from mpilbm.outputs.averages.profile_files import Head, components, describe, result_unit
from mpilbm.outputs.images.description import describe_image, file_shape, place
from mpilbm.outputs.images.part import whole
from mpilbm.physics.lattices import AXES
from mpilbm.storage.partial_file import dataset

if TYPE_CHECKING:
    import h5py

    from mpilbm.case.case import Case
    from mpilbm.storage.planes import OwnFile


FieldsOf = Callable[["Case"], dict[str, tuple[int, ...]]]  # fields and their components
UnitOf = Callable[["Case", str], tuple[float, str]]  # SI value of the lattice unit, SI unit


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
        return {name: Target(name, np.asarray) for name in components(head.case)}

    def describe(self, file: "h5py.File", head: Head) -> None:
        """See Form."""
        describe(file, head)


class Image:
    """VTKHDF ImageData with cell data such as rho, u, reynolds_stress_xx; with [units] in SI.

    An averaged direction has one cell, which is as long as the box. A vector has three components,
    also in 2D. Each component of the stress is an array of its own.
    """

    suffix = "vtkhdf"

    def __init__(self, fields: FieldsOf = components, unit: UnitOf = result_unit):
        self._fields, self._unit = fields, unit

    def targets(self, head: Head) -> dict[str, Target]:
        """See Form."""
        case, shape = head.case, self._local_shape(head)
        found = {}
        for name, parts in self._fields(case).items():
            unit, _ = self._unit(case, name)
            if name == "reynolds_stress":
                for k, pair in enumerate(head.pairs):
                    made = partial(_component, shape=shape, unit=unit, k=k)
                    found[place(f"{name}_{pair}")] = Target(name, made)
            else:
                made = partial(_vector if parts else _scalar, shape=shape, unit=unit)
                found[place(name)] = Target(name, made)
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
        axes, size = AXES[: case.dimensions], case.domain.size
        averaged = [1 if axis in head.axes else n for axis, n in zip(axes, size, strict=True)]
        part = whole(case, averaged)
        describe_image(file, case, head.step, {}, part)
        parts = self._fields(case)
        for path, (field, _) in self.targets(head).items():
            vector = (3,) if parts[field] and field != "reynolds_stress" else ()
            made = dataset(file, path, (*file_shape(case, part), *vector), np.float64)
            unit, text = self._unit(case, field)
            if text:
                made.attrs["unit"], made.attrs[LATTICE_UNIT] = text, unit
        origin = file["mpilbm"]
        origin.attrs["average"], origin.attrs["samples"] = list(head.average), head.samples
        origin.attrs["first_step"] = head.first


def _scalar(data: np.ndarray, shape: tuple[int, int, int], unit: float) -> np.ndarray:
    """A scalar in planes (n, rows, nx), times its unit."""
    return data.reshape(shape) * unit


def _component(data: np.ndarray, shape: tuple[int, int, int], unit: float, k: int) -> np.ndarray:
    """Component k of a field in planes, times its unit."""
    return data[..., k].reshape(shape) * unit


def _vector(data: np.ndarray, shape: tuple[int, int, int], unit: float) -> np.ndarray:
    """A vector in planes (n, rows, nx, 3), times its unit."""
    missing = 3 - data.shape[-1]
    data = data.reshape(*shape, data.shape[-1]) * unit
    return np.pad(data, ((0, 0), (0, 0), (0, 0), (0, missing)))


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

"""Samples of the flow: their sums, which checkpoints contain, and the files of their means."""

import csv
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from mpilbm import __version__
from mpilbm.case.case import Case
from mpilbm.core.quantity import STEPS
from mpilbm.core.units import (
    FIELDS,
    LATTICE_UNIT,
    PRESSURE,
    VELOCITY,
    counted,
    field_unit,
    lattice_text,
)
from mpilbm.model.findings import SERIOUS, WARNING, Finding
from mpilbm.outputs import Output
from mpilbm.outputs.images import part as parts
from mpilbm.outputs.images.vtkhdf import describe_image, file_shape, place
from mpilbm.physics.lattices import AXES
from mpilbm.storage import whole
from mpilbm.storage.partial_file import Describe, dataset

if TYPE_CHECKING:
    import h5py


Shapes = dict[str, tuple[int, ...]]  # of datasets, or of fields at a place
UnitOf = Callable[[Case, str], tuple[float, str]]  # SI value of the lattice unit, SI unit


@dataclass(frozen=True, kw_only=True)
class Head:
    """The description of a profile.

    axes          directions that are not averaged, in the order x, y, z
    average       directions that are averaged
    step, first   steps of the last and of the first sample
    samples       number of samples
    """

    case: Case
    axes: str
    average: tuple[str, ...]
    step: int
    first: int
    samples: int

    @property
    def sizes(self) -> dict[str, int]:
        """Cells along each direction that is not averaged."""
        sizes = dict(zip(AXES, self.case.domain.size, strict=False))
        return {axis: sizes[axis] for axis in self.axes}

    @property
    def units_of_places(self) -> dict[str, tuple[float, str]]:
        """With [units] the SI value of the lattice unit, and its SI unit, along these."""
        units = self.case.units
        return dict.fromkeys(self.axes, (units.cell, "m")) if units else {}

    @property
    def pairs(self) -> list[str]:
        """Names of the components of a stress."""
        axes = AXES[: self.case.dimensions]
        return [a + b for k, a in enumerate(axes) for b in axes[k:]]


class Target(NamedTuple):
    """A dataset of a file: the field of the profile from which it is made, and how."""

    field: str
    made: Callable[[np.ndarray], np.ndarray]


Targets = dict[str, Target]  # by the path of the dataset


class SampleFile(NamedTuple):
    """A kind of file: its suffix, what creates its datasets, and how these are made of fields."""

    suffix: str
    describe: Describe
    targets: Targets


def result_unit(case: Case, name: str) -> tuple[float, str]:
    """The unit of a field of `statistics`; scalars keep theirs, a flux has it times m/s."""
    if case.units and name in {f"flux_{label}" for label in case.labels}:
        return case.units.unit(VELOCITY), "m/s"
    return (1.0, "") if name not in FIELDS else field_unit(case.units, name)


def plain(
    head: Head, shapes: Shapes, unit: UnitOf, more: Callable[["h5py.File"], None]
) -> SampleFile:
    """HDF5 datasets of these shapes in lattice units, coordinates of cell centres, and attributes.

    `more(file)` adds what belongs to one output.
    """
    case = head.case

    def describe(file: "h5py.File") -> None:
        for name, shape in shapes.items():
            dataset(file, name, shape, np.float64)
        for axis, cells in head.sizes.items():
            file[axis] = np.arange(cells) + 0.5
        if case.units:
            units = {name: unit(case, name) for name in shapes}
            for name, (value, text) in (units | head.units_of_places).items():
                file[name].attrs["unit"], file[name].attrs[LATTICE_UNIT] = text, value
        file.attrs["average"], file.attrs["directions"] = list(head.average), list(head.axes[::-1])
        more(file)
        file.attrs["samples"] = head.samples
        file.attrs["first_step"], file.attrs["step"] = head.first, head.step
        file.attrs["units"] = "lattice: cells, steps"
        file.attrs["case"], file.attrs["version"] = case.toml, __version__

    return SampleFile("h5", describe, {name: Target(name, np.asarray) for name in shapes})


def image(head: Head, components: Shapes, unit: UnitOf) -> SampleFile:
    """VTKHDF ImageData with cell data such as rho, u, reynolds_stress_xx; with [units] in SI.

    An averaged direction has one cell, which is as long as the box. A vector has three components,
    also in 2D. Each component of the stress is an array of its own.
    """
    case, sizes = head.case, head.sizes
    shape = -1, 1 if case.dimensions == 2 else sizes.get("y", 1), sizes.get("x", 1)
    targets: Targets = {}
    for name, of_place in components.items():
        value, _ = unit(case, name)
        if name == "reynolds_stress":
            for k, pair in enumerate(head.pairs):
                made = partial(_component, shape=shape, unit=value, k=k)
                targets[place(f"{name}_{pair}")] = Target(name, made)
        else:
            targets[place(name)] = Target(
                name, partial(_field, shape=(*shape, *of_place), unit=value)
            )

    def describe(file: "h5py.File") -> None:
        pairs = zip(AXES, case.domain.size, strict=False)
        part = parts.whole(case, [1 if axis in head.axes else n for axis, n in pairs])
        describe_image(file, case, head.step, {}, part)
        for path, (name, _) in targets.items():
            vector = (3,) if components[name] and name != "reynolds_stress" else ()
            made = dataset(file, path, (*file_shape(case, part), *vector), np.float64)
            value, text = unit(case, name)
            if text:
                made.attrs["unit"], made.attrs[LATTICE_UNIT] = text, value
        origin = file["mpilbm"]
        origin.attrs["average"], origin.attrs["samples"] = list(head.average), head.samples
        origin.attrs["first_step"] = head.first

    return SampleFile("vtkhdf", describe, targets)


def pressure(case: Case, rho: np.ndarray) -> np.ndarray:
    """cs2 (rho - rho_0), the pressure relative to that at rho_0 = 1."""
    return float(case.lattice.cs2) * (rho - 1)


def with_pressure(case: Case, file: SampleFile) -> SampleFile:
    """The file with its datasets of the field `pressure` made of those of rho."""
    made = {
        path: Target("rho", partial(_of_pressure, case, target.made))
        for path, target in file.targets.items()
        if target.field == "pressure"
    }
    return file._replace(targets=file.targets | made)


def _of_pressure(
    case: Case, made: Callable[[np.ndarray], np.ndarray], rho: np.ndarray
) -> np.ndarray:
    return made(pressure(case, rho))


def _component(data: np.ndarray, shape: tuple[int, ...], unit: float, k: int) -> np.ndarray:
    """Component k of a field in planes (n, rows, nx), times its unit."""
    return data[..., k].reshape(shape) * unit


def _field(data: np.ndarray, shape: tuple[int, ...], unit: float) -> np.ndarray:
    """A scalar in planes (n, rows, nx), or a vector with three components, times its unit."""
    data = data.reshape(shape) * unit
    return np.pad(data, ((0, 0),) * 3 + ((0, 3 - shape[3]),)) if len(shape) > 3 else data


def write_table(path: Path, head: Head, fields: dict[str, np.ndarray]) -> None:
    """Write a profile of `statistics` of at most one axis as CSV, a row for each cell along it.

    With [units] the same columns in SI follow.
    """
    axes = AXES[: head.case.dimensions]
    stress = [f"<u_{a}' u_{b}'>" for a, b in map(tuple, head.pairs)]
    names = {
        "rho": (["rho"], ""),
        "u": ([f"u_{axis}" for axis in axes], " (cells/step)"),
        "reynolds_stress": (stress, " (cells^2/step^2)"),
        "pressure": (["pressure"], f" ({lattice_text(PRESSURE)})"),
    }
    if head.case.single_fluid:
        fields = fields | {"pressure": pressure(head.case, fields["rho"])}
    for name, shape in head.case.in_samples.components.items():
        of = [f"{name}_{axis}" for axis in axes] if shape else [name]
        names.setdefault(name, (of, ""))
    places = {axis: np.arange(cells) + 0.5 for axis, cells in head.sizes.items()}
    names |= {axis: ([axis], " (cells)") for axis in places}
    count = next((cells for cells in head.sizes.values()), 1)
    values = {name: data.reshape(count, -1) for name, data in (places | fields).items()}
    header = [one + names[key][1] for key in values for one in names[key][0]]
    columns = list(values.values())
    if head.case.units:
        units = {key: result_unit(head.case, key) for key in fields} | head.units_of_places
        header += [f"{one} ({units[key][1]})" for key in values for one in names[key][0]]
        columns += [data * units[key][0] for key, data in values.items()]
    with whole(path, newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows([map(repr, map(float, row)) for row in np.concatenate(columns, axis=1)])


Directions = Annotated[
    tuple[str, ...],
    Field(description="homogeneous directions: x, y, z", examples=[["x", "y"]]),
]
FileSteps = Annotated[
    int | None,
    STEPS,
    Field(
        gt=0,
        description="steps between files; without it: one file at the end",
        examples=[100000],
    ),
]


class Averaged(Output):
    """Sampled at every `every`-th step; files have averages over all samples before them."""

    free: ClassVar[tuple[str, ...]] = ("write",)
    # The keys that a warning of no sample names.
    window: ClassVar[tuple[str, ...]] = ("every",)

    if TYPE_CHECKING:  # fields of the subclasses
        average: tuple[str, ...]
        begin: int | None  # the first step that may be sampled
        write: int | None

    @field_validator("average", check_fields=False)
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not set(value) <= set(AXES) or len(set(value)) < len(value):
            raise ValueError(f"found {list(value)}; allowed: some of x, y, z, each once")
        return value

    @abstractmethod
    def sampled(self, step: int) -> bool:
        """Whether this step is sampled."""

    @abstractmethod
    def samples(self, last: int) -> int:
        """The number of samples in a run of `last` steps."""

    @abstractmethod
    def part_of_names(self, case: Case) -> str:
        """The part of the names of files and of the group in checkpoints after `name`."""

    @abstractmethod
    def kinds(self, head: Head) -> list[SampleFile]:
        """The kinds of files."""

    def has_table(self, case: Case) -> bool:
        """Whether the fields of `statistics` are also written as a table."""
        return False

    def axes(self, dimensions: int) -> str:
        """The directions that are not averaged, like "y"; "" if all are."""
        return "".join(axis for axis in AXES[:dimensions] if axis not in self.average)

    def along(self, case: Case) -> tuple[bool, bool]:
        """Whether the rows of a plane, and x, are averaged; in 2D a plane has only one row."""
        return case.dimensions == 2 or "y" in self.average, "x" in self.average

    def over_planes(self, case: Case) -> bool:
        """Whether planes are averaged."""
        return AXES[case.dimensions - 1] in self.average

    def file_count(self, times: int) -> int:
        """The number of files after so many samples."""
        return max(1, times * self.every // self.write) if self.write else 1

    def how_often(self, last: int) -> str:
        """The number of samples (not of files), in words."""
        return f"{counted(self.samples(last), 'sample')}, every {self.every}"

    def problems(self, case: Case) -> list[str]:
        """A direction that does not exist, files between samples."""
        found = super().problems(case)
        if case.dimensions == 2 and "z" in self.average:
            found.append("average: found 'z' in 2D; allowed: x, y")
        if self.write and self.write % self.every:
            found.append(
                f"write: found {self.write}; allowed: a multiple of every = {self.every}, since "
                "files are written at samples"
            )
        return found

    def row_problems(self, case: Case, what: str) -> list[str]:
        """Rows of a staggered lattice that are not averaged; `what`: what they lack."""
        if not case.lattice.staggered or "x" in self.average:
            return []
        stores = f"{case.lattice.name} stores every other node of a row"
        return [f"average: {stores}, so that only rows have {what}; add 'x'"]

    def warnings(self, case: Case) -> list[Finding]:
        """No sample, or only one."""
        steps, samples = case.run.steps, self.samples(case.run.steps)
        if samples > 1 or not steps:
            return []
        given = {key: getattr(self, key) for key in self.window}
        keys = ", ".join(f"{key} = {value}" for key, value in given.items())
        found = f"found {keys}, and the run has {counted(steps, 'step')}"
        if samples:
            sentence = f"{found}: one sample is taken; lower begin and every"
            return [Finding(WARNING, "every", sentence)]
        sentence = f"{found}: no sample is taken, no file is written; lower begin and every"
        return [Finding(SERIOUS, self.window[0], sentence)]

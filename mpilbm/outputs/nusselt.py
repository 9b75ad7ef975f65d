"""Fluxes of a scalar and Nusselt numbers over time, as rows of a CSV file."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, prod
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from mpilbm.case.case import Case
from mpilbm.case.model import Scalar
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.core.tables import TableWriter
from mpilbm.outputs.nusselt_bodies import BodyNumber
from mpilbm.outputs.paired_samples import Floats, PairedSamples, Sample, mean_of
from mpilbm.parallel import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.solver.scalar_transport import over_owners
from mpilbm.storage.csv_log import Rows

VALUE_BYTES, MORE = 26, 12  # of a number in a row; columns besides those of faces and bodies
LINK_BYTES = 64  # of a cell next to a face, with its links


@register("outputs", "nusselt")
class Nusselt(Scheduled):
    """Fluxes of a scalar phi and its Nusselt numbers as rows of `nusselt.csv`.

        Nu = flux length / (D difference),   difference = phi(lower face) - phi(upper face)

    `flux_<face>`: mean flux into the fluid through a face that is not periodic, over its whole
    area, positive if it adds phi to the fluid: the populations that enter through its links less
    those that leave, the mean of the steps before and after (at step 0 the latter alone), since a
    part may alternate (see paired_samples.py). `rate_<body>`: the same sum over the links of a
    body, not divided by an area. In each step these fluxes and the sources are exactly what the sum
    of phi over the fluid changes by. `flux_volume` = <u_a phi - D d_a phi> along
    the axis a, and `dissipation` = D <|grad phi|^2>, means over the fluid cells at the step, with
    differences to both neighbours, next to walls to one.

    Nusselt numbers, positive for a flux from the larger to the smaller value: `nusselt_<face>` of
    the two faces of the axis (if they are not periodic), `nusselt_volume`, and
    `nusselt_dissipation` = dissipation n_a length / (D difference^2), n_a cells along the axis. In
    a steady state in a box with given values at these two faces, without bodies, sources and
    other fluxes, all four are equal. Bodies in `body` have `nusselt_<body>` = rate length / (area D
    difference), positive for a flux from a body to a fluid of a smaller value. In lattice units;
    with [units] the time and the fluxes in SI follow. With a label the file is nusselt_<label>.csv.
    """

    scalar: str | None = Field(
        None, description="label of the scalar; without it: the only one", examples=["T"]
    )
    axis: str | None = Field(
        None,
        description="direction of the flux; without it: that of the two faces with `value`",
        examples=["y"],
    )
    length: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="length of Nu; without it: the box along the axis", examples=[64]
    )
    difference: float | None = Field(
        None,
        description="difference of Nu; without it: value at the lower face - value at the upper",
        examples=[1.0],
    )

    body: tuple[BodyNumber, ...] = Field(
        (),
        description="bodies whose Nusselt number is written, with their length and surface",
        examples=[[{"label": "ball", "length": 20, "area": 1256}]],
    )

    files: ClassVar[tuple[str, ...]] = ("nusselt.csv", "nusselt_<label>.csv")

    @property
    def file(self) -> str:
        """The name of its file."""
        return "nusselt.csv" if self.label is None else f"nusselt_{self.label}.csv"

    def scales(self, case: Case) -> "Scales":
        """The scales of Nu; NotDefined if they do not follow from the case."""
        number = scalar_number(case, self.scalar)
        scalar, D, axis = case.scalars[number], case.dimensions, self.axis
        between = {a: values for a in range(D) if (values := wall_values(scalar, a)) is not None}
        if axis is not None and axis not in AXES[:D]:
            raise NotDefined(f"axis: found '{axis}' in {D}D; allowed: {', '.join(AXES[:D])}")
        if axis is None and len(between) != 1:
            found = "no axis has" if not between else "several axes have"
            likely = " or ".join(f'"{each}"' for each in _likely_axes(case, scalar))
            raise NotDefined(
                f"axis: missing, and {found} two faces with a constant `value` of {scalar.label}; "
                f"allowed: {', '.join(AXES[:D])}; add axis = {likely}, the direction of the flux"
            )
        a = next(iter(between)) if axis is None else AXES.index(axis)
        difference = self.difference
        if difference is None and a not in between:
            raise NotDefined(
                f"difference: missing, and the faces {AXES[a]}- and {AXES[a]}+ have no constant "
                f"`value` of {scalar.label}; give the difference of {scalar.label}"
            )
        if difference is None:
            difference = between[a][0] - between[a][1]
        if difference == 0:
            raise NotDefined(
                "difference: is 0, so that a Nusselt number is not defined; give another"
            )
        length = float(case.domain.size[a]) if self.length is None else self.length
        return Scales(number, a, length, difference, scalar.diffusivity)

    def definition(self, case: Case) -> dict[str, Any]:
        """The scales, also those that follow from the case."""
        scales = self.scales(case)
        found: dict[str, Any] = {"scalar": case.labels[scales.number], "axis": AXES[scales.axis]}
        found |= {"length": scales.length, "difference": scales.difference}
        bodies = [each.model_dump(mode="json", exclude_none=True) for each in self.body]
        return found | ({"body": bodies} if bodies else {})

    def scalars(self, case: Case) -> tuple[int, ...]:
        """The one that it names."""
        try:
            return (scalar_number(case, self.scalar),)
        except NotDefined:
            return ()

    def kernels(self, case: Case) -> tuple[str, ...]:
        """The kernel of the sums over the fluid."""
        return ("transport",)

    def problems(self, case: Case) -> list[str]:
        """Also scales that do not follow, and two outputs of one file."""
        found = super().problems(case)
        same = [each for each in case.outputs if isinstance(each, Nusselt) and each is not self]
        if self.label is None and any(each.label is None for each in same):
            found.append("label: two outputs 'nusselt' without a label; give one of them a label")
        try:
            scales = self.scales(case)
        except NotDefined as error:
            return [*found, str(error)]
        given = [each.label for each in self.body]
        twice = sorted({label for label in given if given.count(label) > 1})
        found += [f"body: found '{label}' twice; keep one" for label in twice]
        faces = [axis + side for axis in AXES[: case.dimensions] for side in "-+"]
        for label in {"volume", "dissipation", *faces}.intersection(given):
            found.append(
                f"body: found '{label}', and nusselt_{label} is that of the fluid or of a face; "
                "give the body another label"
            )
        problems = (line for each in self.body for line in each.problems(case, scales.number))
        return found + [f"body: {problem}" for problem in problems]

    def disk_bytes(self, case: Case, times: int) -> int:
        """A row each time."""
        columns = MORE + 3 * (2 * case.dimensions + len(case.bodies)) + len(self.body)
        return times * VALUE_BYTES * columns

    def device_bytes(self, case: Case, planes: int) -> int:
        """The sums over rows, and the links of the faces; those of bodies are not known here."""
        _, rows, nx = case.shape
        along = planes * rows * 2 + planes * nx * 2 + rows * nx * 2
        return 8 * planes * rows * (2 * case.dimensions + 1) + LINK_BYTES * along

    def ahead(self, case: Case) -> bool:
        """Fluxes through walls are sums over links, means of two steps."""
        return True

    def open(self, context: Context) -> "NusseltWriter":
        """Creates the file; after a restart keeps its rows up to the first step."""
        return NusseltWriter(context, self)


class NotDefined(ValueError):
    """A scale that does not follow from the case; the text names the key."""


@dataclass(frozen=True)
class Scales:
    """Nu = flux length / (diffusivity difference), for the flux along +axis."""

    number: int
    axis: int
    length: float
    difference: float
    diffusivity: float

    @property
    def unit(self) -> float:
        """The flux whose Nusselt number is 1."""
        return self.diffusivity * self.difference / self.length


def scalar_number(case: Case, label: str | None) -> int:
    """The number of the scalar with this label, or of the only one; NotDefined."""
    known = ", ".join(dict.fromkeys(case.labels))
    if not known:
        raise NotDefined("scalar: the case has none; add [[scalar]] or remove this output")
    if label is None and len(set(case.labels)) > 1:
        raise NotDefined(f"scalar: missing; allowed: one of {known}")
    if label is not None and label not in case.labels:
        raise NotDefined(f"scalar: found '{label}'; allowed: {known}")
    return 0 if label is None else case.labels.index(label)


def wall_values(scalar: Scalar, axis: int) -> tuple[float, float] | None:
    """The values at the lower and the upper face of an axis; None unless both are numbers."""
    of_faces: dict[str, ScalarBoundary] = {
        face: each for each in scalar.boundaries for face in each.where
    }
    found = []
    for side in "-+":
        boundary = of_faces.get(AXES[axis] + side)
        value = getattr(boundary, "value", None) if boundary is not None else None
        if not isinstance(value, int | float):
            return None
        found.append(float(value))
    return found[0], found[1]


def supplied(scalar: Scalar) -> frozenset[str]:
    """The faces at which a value or a flux is given; the others are adiabatic or outlets."""
    return frozenset(face for each in scalar.boundaries if each.values() for face in each.where)


def _likely_axes(case: Case, scalar: Scalar) -> list[str]:
    """The axes along which there may be a flux: those with the most faces of `supplied`."""
    names, faces = AXES[: case.dimensions], supplied(scalar)
    count = [len({f"{axis}-", f"{axis}+"} & faces) for axis in names]
    closed = [not periodic for periodic in case.domain.periodic]
    best = max(zip(count, closed, strict=True))
    return [axis for axis, *each in zip(names, count, closed, strict=True) if tuple(each) == best]


class NusseltWriter(TableWriter):
    """Rank 0 writes the file; the device of each rank sums over its planes and their links."""

    def __init__(self, context: Context, output: Nusselt):
        super().__init__(context)
        self.bodies, scales = output.body, output.scales(context.case)
        self.scales = scales
        self.scalar = context.case.scalars[scales.number]
        assert context.solver.transport is not None, "the case needs fluxes, see Output.scalars"
        self.transport = context.solver.transport
        self.links = self.transport.fluxes[scales.number]
        self._samples = PairedSamples(context.solver, self._sums)
        fluid = context.comm.gather(int(context.solver.geometry.fluid_cells.sum()))
        self.fluid_cells = max(1, sum(fluid or ()))
        size = self.case.domain.size
        self.names: list[str] = []  # of the columns of faces and bodies
        areas = []  # by which their sums are divided
        for owner in self.links.owners:
            if owner.body is not None:
                self.names.append(f"rate_{self.case.bodies[owner.body].label}")
                areas.append(1)
            else:
                (face,) = owner.boundary.where
                self.names.append(f"flux_{face}")
                areas.append(prod(size) // size[AXES.index(face[0])])
        self.areas = np.array(areas, float)
        sides = (AXES[scales.axis] + side for side in "-+")
        self.faces = [face for face in sides if f"flux_{face}" in self.names]  # not periodic ones
        on_root(context.comm, self._open, output.file)

    def header(self) -> list[str]:
        """Names of the columns."""
        fluxes = [*self.names, "flux_volume"]
        parts = (*self.faces, "volume", "dissipation", *(body.label for body in self.bodies))
        numbers = [f"nusselt_{part}" for part in parts]
        in_si = ["time_s", *self._si_columns(fluxes)] if self.case.units else []
        return ["step", "time", *fluxes, "dissipation", *numbers, *in_si]

    def _si_columns(self, names: list[str]) -> dict[str, tuple[int, ...]]:
        """Name and dimension of the columns in SI, of heat if the scalar has a heat capacity.

        A rate of a body in 2D is per metre.
        """
        heat = self.scalar.heat_capacity is not None
        found: dict[str, tuple[int, ...]] = {}
        for name in names:
            metres = self.case.dimensions - 1 if name.startswith("rate_") else 0
            moved = "m/s" if not metres else f"m^{metres + 1}/s"
            unit = ("W/m^2", "W/m", "W")[metres] if heat else moved
            found[f"{name} ({unit})"] = (1 + metres, -1, 0)
        return found

    def _open(self, name: str) -> None:
        first = self.context.first_step
        self.rows = self.keep(Rows(self.context.directory / name, self.header(), first))

    def _sums(self) -> Sample:
        links = self.links.start()

        def totals() -> Floats | None:
            parts = self.comm.gather((self.links.groups, links()))
            return None if parts is None else over_owners(self.links.owners, parts)

        return totals

    def prepare(self, step: int) -> None:
        """Enqueue the sums over links in the step before one at which a row is written."""
        self._samples.take()

    def start(self, step: int) -> Callable[[], tuple[Floats | None, list[Floats] | None]]:
        """Enqueue the sums over the planes and the links of this rank."""
        volume, fluxes = self.transport.start(self.scales.number), mean_of(self._samples.around())
        return lambda: (fluxes(), self.comm.gather(volume()))

    def add_rows(self, step: int, found: tuple[Floats, list[Floats]]) -> None:
        """Add a row from the fluxes of all owners, and the sums over planes of each rank."""
        fluxes, volumes = found
        means = np.cumsum(np.concatenate(volumes), axis=0)[-1] / self.fluid_cells
        a, D, scales = self.scales.axis, self.case.dimensions, self.scales
        fluxes = np.append(fluxes / self.areas, means[a] - scales.diffusivity * means[D + a])
        dissipation = scales.diffusivity * means[2 * D]
        row = [step, *fluxes, dissipation, *self._numbers(fluxes, dissipation)]
        self.rows.add(step, [*row, *self._in_si(step, fluxes)])

    def _numbers(self, fluxes: np.ndarray, dissipation: float) -> list[float]:
        """The Nusselt numbers."""
        scales, by_name = self.scales, dict(zip([*self.names, "volume"], fluxes, strict=True))
        inwards = [by_name[f"flux_{face}"] * (1 if face[1] == "-" else -1) for face in self.faces]
        of_flux = [flux / scales.unit for flux in (*inwards, by_name["volume"])]
        supplied = scales.unit * scales.difference / self.case.domain.size[scales.axis]
        of_bodies = [
            each.number(by_name[f"rate_{each.label}"], scales.diffusivity, scales.difference)
            for each in self.bodies
        ]
        return [*of_flux, dissipation / supplied if supplied else nan, *of_bodies]

    def _in_si(self, step: int, fluxes: np.ndarray) -> list[float]:
        units, capacity = self.case.units, self.scalar.heat_capacity or 1.0
        if not units:
            return []
        dimensions = self._si_columns([*self.names, "flux_volume"]).values()
        pairs = zip(fluxes.tolist(), dimensions, strict=True)
        return [self.time(step), *(capacity * units.to_si(flux, of) for flux, of in pairs)]

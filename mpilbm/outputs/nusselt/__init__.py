"""Fluxes of a scalar and Nusselt numbers over time, as rows of a CSV file."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import register
from mpilbm.outputs import Context
from mpilbm.outputs.core.scheduled import Scheduled
from mpilbm.outputs.nusselt.scales import NotDefined, Scales, scalar_number, scales
from mpilbm.outputs.nusselt.writer import NusseltWriter
from mpilbm.physics.lattices import AXES

if TYPE_CHECKING:
    from mpilbm.case.case import Case

VALUE_BYTES, MORE = 26, 12  # of a number in a row; columns besides those of faces and bodies
LINK_BYTES = 64  # of a cell next to a face, with its links


@register("outputs", "nusselt")
class Nusselt(Scheduled):
    """Fluxes of a scalar phi and its Nusselt numbers as rows of `nusselt.csv`.

        Nu = flux length / (D difference),   difference = phi(lower face) - phi(upper face)

    `flux_<face>`: mean flux into the fluid through a face that is not periodic, over its whole
    area, positive if it adds phi to the fluid: the populations that enter through its links less
    those that leave, in the following step, at the time step + 1/2. `rate_<body>`: the same sum
    over the links of a body, not divided by an area. These fluxes and the sources are exactly what
    the sum of phi over the fluid changes by in a step. `flux_volume` = <u_a phi - D d_a phi> along
    the axis a, and `dissipation` = D <|grad phi|^2>, means over the fluid cells at the step, with
    differences to both neighbours, next to walls to one.

    Nusselt numbers, positive for a flux from the larger to the smaller value: `nusselt_<face>` of
    the two faces of the axis (if they are not periodic), `nusselt_volume`, and
    `nusselt_dissipation` = dissipation n_a length / (D difference^2), n_a cells along the axis. In
    a steady state in a box with given values at these two faces, without bodies, sources and
    other fluxes, all four are equal. In lattice units; with [units] the time and the fluxes in SI
    follow. A file of an output with a label is `nusselt_<label>.csv`.
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

    files: ClassVar[tuple[str, ...]] = ("nusselt.csv", "nusselt_<label>.csv")

    @property
    def file(self) -> str:
        """The name of its file."""
        return "nusselt.csv" if self.label is None else f"nusselt_{self.label}.csv"

    def scales(self, case: "Case") -> Scales:
        """The scales of Nu; NotDefined if they do not follow from the case."""
        return scales(case, self.scalar, self.axis, self.length, self.difference)

    def definition(self, case: "Case") -> dict[str, Any]:
        """The scales, also those that follow from the case."""
        scales = self.scales(case)
        return {"scalar": case.labels[scales.number], "axis": AXES[scales.axis],
                "length": scales.length, "difference": scales.difference}  # fmt: skip

    def scalars(self, case: "Case") -> tuple[int, ...]:
        """The one that it names."""
        try:
            return (scalar_number(case, self.scalar),)
        except NotDefined:
            return ()

    def kernels(self, case: "Case") -> tuple[str, ...]:
        """That of the sums over the fluid."""
        return ("transport",)

    def problems(self, case: "Case") -> list[str]:
        """Those of the base class; scales that do not follow; two outputs of one file."""
        found = super().problems(case)
        same = [each for each in case.outputs if isinstance(each, Nusselt) and each is not self]
        if self.label is None and any(each.label is None for each in same):
            found.append("label: two outputs 'nusselt' without a label; give one of them a label")
        try:
            self.scales(case)
        except NotDefined as error:
            found.append(str(error))
        return found

    def disk_bytes(self, case: "Case", times: int) -> int:
        """A row each time."""
        columns = MORE + 3 * (2 * case.dimensions + len(case.bodies))
        return times * VALUE_BYTES * columns

    def device_bytes(self, case: "Case", planes: int) -> int:
        """The sums over rows, and the links of the faces; those of bodies are not known here."""
        _, rows, nx = case.shape
        along = planes * rows * 2 + planes * nx * 2 + rows * nx * 2
        return 8 * planes * rows * (2 * case.dimensions + 1) + LINK_BYTES * along

    def open(self, context: Context) -> NusseltWriter:
        """Creates the file; after a restart keeps its rows up to the first step."""
        return NusseltWriter(context, self.scales(context.case), self.file)

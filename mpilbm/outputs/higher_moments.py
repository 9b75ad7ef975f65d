"""Variance, skewness, flatness and extrema of rho and u."""

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from mpilbm.core.registry import register
from mpilbm.outputs.averages.forms import Image
from mpilbm.outputs.averages.profile_files import Head
from mpilbm.outputs.averages.sample_writer import SampleFile
from mpilbm.outputs.host_samples.output import HostSampled, unit_of
from mpilbm.outputs.host_samples.plane_sums import HigherMoments, PlaneSums, moment_components

if TYPE_CHECKING:
    from mpilbm.case.case import Case


@register("outputs", "higher_moments")
class HigherMomentsOutput(HostSampled):
    """Variance, skewness, flatness and extrema of rho and u: `higher_moments_<label>_<step>.h5`.

    Over the samples, the fluid cells and the directions of `average`, for q of rho and u:

        variance = <q'^2>, skewness = <q'^3> / <q'^2>^(3/2), flatness = <q'^4> / <q'^2>^2

    A normal distribution has the skewness 0 and the flatness 3, a sine 0 and 1.5. Threads of the
    host compute them from copies of rho and u; without x or y in `average` the host needs 200 bytes
    per cell in 3D. In lattice units; with [units] datasets have the attributes unit and lattice
    unit, and the VTKHDF file is in SI.
    [Pébay 2008, Sandia report SAND2008-6212]
    """

    free: ClassVar[tuple[str, ...]] = ("format",)

    format: Literal["h5", "vtkhdf", "both"] = Field(
        "h5", description="plain HDF5, VTKHDF for ParaView and PyVista, or both"
    )

    files: ClassVar[tuple[str, ...]] = (
        "higher_moments_<label>_<step>.h5",
        "higher_moments_<label>_<step>.vtkhdf",
    )

    def sums(self, case: "Case") -> HigherMoments:
        """See HostSampled."""
        _, rows, nx = case.shape
        return HigherMoments(rows, nx, case.dimensions, self.along(case))

    def kinds(self, sums: PlaneSums, head: Head) -> list[SampleFile]:
        """Plain HDF5, VTKHDF, or both."""
        image = Image(
            lambda case: moment_components(case.dimensions),
            lambda case, name: unit_of(case.units, name),
        )
        vtk = SampleFile("vtkhdf", partial(image.describe, head=head), image.targets(head))
        plain = super().kinds(sums, head)
        return {"h5": plain, "vtkhdf": [vtk], "both": [*plain, vtk]}[self.format]

    def disk_bytes(self, case: "Case", times: int) -> int:
        """As HostSampled; an image has vectors of three components."""
        size, D = super().disk_bytes(case, times), case.dimensions
        image = -(-size * 4 // (1 + D))
        return {"h5": size, "vtkhdf": image, "both": size + image}[self.format]

    def problems(self, case: "Case") -> list[str]:
        """Also rows of a staggered lattice that are not averaged."""
        found = super().problems(case)
        if case.lattice.staggered and "x" not in self.average:
            found.append(
                f"average: {case.lattice.name} stores every other node of a row, so that only "
                "rows have moments; add 'x'"
            )
        return found

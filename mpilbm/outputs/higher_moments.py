"""Variance, skewness, flatness and extrema of rho and u."""

from typing import TYPE_CHECKING, ClassVar

from mpilbm.outputs.host_samples.output import HostSampled
from mpilbm.outputs.host_samples.plane_sums import HigherMoments
from mpilbm.registry import register

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
    unit.
    [Pébay 2008, Sandia report SAND2008-6212]
    """

    files: ClassVar[tuple[str, ...]] = ("higher_moments_<label>_<step>.h5",)

    def sums(self, case: "Case") -> HigherMoments:
        """See HostSampled."""
        _, rows, nx = case.shape
        return HigherMoments(rows, nx, case.dimensions, self.along(case))

    def problems(self, case: "Case") -> list[str]:
        """Also rows of a staggered lattice that are not averaged."""
        found = super().problems(case)
        if case.lattice.staggered and "x" not in self.average:
            found.append(
                f"average: {case.lattice.name} stores every other node of a row, so that only "
                "rows have moments; add 'x'"
            )
        return found

"""A regularized collision whose bulk viscosity is a parameter of its own."""

from pydantic import Field

from mpilbm.plugin import Collision, register


@register("collisions", "regularized_bulk")
class RegularizedBulk(Collision):
    """f* = feq + w_i Q_i : ((1 - omega) S + (1 - omega_bulk) T) / (2 cs4).

    A = sum_j c_j c_j d_j is the stress, T = tr(A)/D 1 and S = A - T its parts, Q_i = c_i c_i -
    cs2 1. nu = cs2 (1/omega - 1/2); bulk viscosity 2/D cs2 (1/omega_bulk - 1/2).
    """

    omega_bulk: float = Field(1.0, gt=0, lt=2, description="rate of the trace of the stress")

    shear_rate = "omega"  # the rate that a closure such as smagorinsky changes
    numbers = ("omega_bulk",)  # arguments of the kernel: another value needs no compilation
    second_order = True  # nothing beyond second moments leaves: allows the layout `moments`

    def rates(self, nu, lattice):
        """Numbers of the kernel, from the viscosity in lattice units."""
        return {"omega": 1 / (nu / float(lattice.cs2) + 0.5), "omega_bulk": self.omega_bulk}

    def relax(self, lattice, d, omega, omega_bulk):
        """R(d)_i: d_i without the part of its second moments that is kept."""
        axes, cs2 = range(lattice.D), lattice.cs2
        stress = {
            (a, b): sum(c[a] * c[b] * d_i for c, d_i in zip(lattice.c, d, strict=True))
            for a in axes
            for b in axes
        }
        mean = sum(stress[a, a] for a in axes) / lattice.D
        relaxed = []
        for w, c, d_i in zip(lattice.w, lattice.c, d, strict=True):
            kept = 0
            for (a, b), value in stress.items():
                trace = mean if a == b else 0
                part = (1 - omega) * (value - trace) + (1 - omega_bulk) * trace
                kept += (c[a] * c[b] - (cs2 if a == b else 0)) * part
            relaxed.append(d_i - w / (2 * cs2**2) * kept)
        return relaxed

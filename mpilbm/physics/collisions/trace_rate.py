"""Collisions that may relax the trace of the second moments at a rate of its own."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, TypeVar

from pydantic import Field

from mpilbm.core.units import omega_from_viscosity
from mpilbm.model.expressions import Expression, Rates
from mpilbm.physics.algebra import split
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice

K = TypeVar("K")
WALLS = 1.2  # the largest omega_bulk with which half-way walls may slide at 20 viscosities


class TraceRate(Collision):
    """Base class of collisions that relax the second moments A, with the trace tr A apart.

    A*_ab = (1 - omega) (A_ab - delta_ab tr A / D) + (1 - omega_bulk) delta_ab tr A / D. The trace
    determines the bulk viscosity 2 cs2 (1/omega_bulk - 1/2) / D, which damps sound. Without
    `omega_bulk` the trace relaxes with omega: at high Reynolds numbers sound is then not damped.
    A rate of 1 is a constant of the kernel text, see InFrame.
    """

    omega_bulk: float | None = Field(
        None,
        gt=0,
        lt=2,
        examples=[1.0],
        description="rate of the trace of the second moments; sets the bulk viscosity. "
        "None: omega. 1 damps sound",
    )

    shear_rate = "omega"
    bulk_rate = "omega_bulk"

    @property
    def fastest_wall(self) -> float:
        """5; without a limit if omega_bulk is at most WALLS: with 1.8 walls at 20 are unstable."""
        return inf if self.omega_bulk is not None and self.omega_bulk <= WALLS else 5

    def structure(self) -> dict[str, Any]:
        """Properties that determine the kernel text: of `omega_bulk` whether it is None or 1."""
        found = super().structure()
        constant = found.pop("omega_bulk") in (None, 1)
        return found | {"trace": self.omega_bulk if constant else "argument"}

    def rates(self, nu: float, lattice: Lattice) -> dict[str, float]:
        """`omega` from the viscosity, and `omega_bulk` if it is given and not 1."""
        found = {"omega": omega_from_viscosity(nu, lattice.cs2)}
        if self.omega_bulk in (None, 1):
            return found
        return found | {"omega_bulk": self.omega_bulk}

    def kept(
        self, second: Mapping[K, Expression], diagonal: Sequence[K], rates: Rates
    ) -> dict[K, Expression]:
        """A* from the moments A, of which `diagonal` are the keys of A_xx, A_yy, …"""
        keep = 1 - rates["omega"]
        found = {key: keep * value for key, value in second.items()}
        if self.omega_bulk is not None:
            bulk = 1 - rates.get("omega_bulk", 1)
            values = split([second[key] for key in diagonal], keep, bulk)
            found |= dict(zip(diagonal, values, strict=True))
        return found

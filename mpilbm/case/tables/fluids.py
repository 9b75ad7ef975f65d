"""Fluids: viscosity, collision, force and initial fields."""

from math import isfinite
from typing import Annotated, Self

from pydantic import Field, model_validator

from mpilbm.case.tables.values import Label, Positive, default
from mpilbm.choice import Choice
from mpilbm.formulas.values import Value
from mpilbm.physics.collisions import Collision
from mpilbm.physics.forcing import Forcing
from mpilbm.quantity import LENGTH, RHO, STEPS, VELOCITY, VISCOSITY
from mpilbm.registry import Parameters
from mpilbm.units import viscosity_from_reynolds


class InitialTable(Parameters):
    """Density and velocity at t = 0: numbers, formulas of x y z nx ny nz pi, or a snapshot.

    `file` is a snapshot of an earlier run, which is resampled if its size differs.
    `non_equilibrium` adds the stress of the velocity gradient to the populations. `iterate` is a
    number of steps at fixed velocity, in which the density adapts to the pressure of this flow.
    """

    rho: Annotated[Value, RHO] = Field(
        1.0, description="density", examples=["1 + 0.01*cos(2*pi*x/nx)"]
    )
    u: Annotated[tuple[Value, ...], VELOCITY] = Field(
        (),
        description="velocity, one entry per dimension; empty: 0",
        examples=[["0.05*sin(2*pi*y/ny)", 0]],
    )
    file: str | None = Field(
        None,
        description="snapshot that holds rho and u; its size may differ",
        examples=["coarse.out/snapshot_000010000.vtkhdf"],
    )
    non_equilibrium: bool = Field(
        False, description="add the viscous stress of the velocity gradient"
    )
    iterate: Annotated[int, STEPS] = Field(
        0,
        ge=0,
        lt=2**31,
        description="steps at a fixed velocity in which the density adapts to the pressure",
        examples=[192],
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        """Either a file, or rho and u."""
        given = [key for key in ("rho", "u") if key in self.model_fields_set]
        if self.file is not None and given:
            raise ValueError(
                f"has file and {', '.join(given)}; a snapshot contains both; remove one"
            )
        return self


class Viscosity(Parameters):
    """The kinematic viscosity in lattice units: a number, or velocity * length / reynolds."""

    viscosity: Annotated[Positive | None, VISCOSITY] = Field(
        None, description="kinematic viscosity, cs2 (tau - 1/2)", examples=[0.0256]
    )
    reynolds: Positive | None = Field(
        None, description="Reynolds number; requires length and velocity", examples=[1000]
    )
    length: Annotated[Positive | None, LENGTH] = Field(
        None, description="length of the Reynolds number", examples=[256]
    )
    velocity: Annotated[Positive | None, VELOCITY] = Field(
        None, description="velocity of the Reynolds number", examples=[0.1]
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Either `viscosity`, or all three other keys."""
        three = ("reynolds", "length", "velocity")
        given = [key for key in three if getattr(self, key) is not None]
        missing = [key for key in three if key not in given]
        if self.viscosity is not None and given:
            raise ValueError(
                f"has viscosity and {', '.join(given)}; give either viscosity "
                "or reynolds, length and velocity"
            )
        if self.viscosity is None and missing:
            found = f"has {', '.join(given)} but no {', '.join(missing)}" if given else "is empty"
            raise ValueError(f"{found}; give viscosity, or all of reynolds, length and velocity")
        if not isfinite(self.value()):
            raise ValueError(
                f"velocity * length / reynolds is {self.value():g}; allowed: a finite viscosity; "
                "change one of them"
            )
        return self

    def value(self) -> float:
        """The viscosity, as given or from the Reynolds number."""
        if self.viscosity is not None:
            return self.viscosity
        given = self.reynolds, self.length, self.velocity
        return viscosity_from_reynolds(*(each for each in given if each is not None))


class FluidTable(Viscosity):
    """One of several fluids."""

    label: Label = Field(
        description="name of the fluid in the keys of other tables and in files", examples=["oil"]
    )
    collision: Annotated[Collision, Choice("collisions")] = default(
        "collisions", "bgk", "collision operator of this fluid"
    )
    force: Annotated[Forcing | None, Choice("forcing")] = Field(
        None, description="force on this fluid"
    )
    initial: InitialTable = Field(
        InitialTable(), description="initial fields of this fluid", examples=[{"rho": 0.5}]
    )

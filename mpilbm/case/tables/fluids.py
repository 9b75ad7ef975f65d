"""Fluids: viscosity, collision, force and initial fields."""

from math import isfinite
from typing import Annotated, Self

from pydantic import Field, model_validator

from mpilbm.case.random_flow import RandomFlow
from mpilbm.case.tables import Label, Positive, default
from mpilbm.core.formulas.values import PositiveValue, Value
from mpilbm.core.quantity import LENGTH, RHO, STEPS, VELOCITY, VISCOSITY
from mpilbm.core.registry import Choice, Parameters
from mpilbm.core.units import viscosity_from_reynolds
from mpilbm.physics.collisions import Collision
from mpilbm.physics.forcing import Forcing


class InitialTable(Parameters):
    """Density and velocity at t = 0: numbers, formulas of x y z nx ny nz pi, a file, or random.

    `file` is a snapshot of an earlier run, or arrays: a .npz file with rho (nz, ny, nx) and u
    (nz, ny, nx, 3), in 2D (ny, nx) and (ny, nx, 2), written by numpy.savez; or one of these as .npy
    or .h5:dataset. What the file does not have is rho = 1 or u = 0. Fields of another size are
    resampled by linear interpolation in a box of the same proportions. `scale` then converts the
    velocity: u scale, and 1 + (rho - 1) scale^2, the pressure of the same flow; the densities of
    coupled fluids are kept. `random` is a velocity without divergence.
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
        description="snapshot, or rho and u as .npz, .npy or .h5:dataset; its size may differ",
        examples=["coarse.out/snapshot_000010000.vtkhdf"],
    )
    scale: Positive = Field(
        1.0,
        description="factor of the velocity of the file, such as n_file / n for the same viscosity "
        "and Reynolds number on another grid",
        examples=[0.5],
    )
    random: RandomFlow | None = Field(
        None,
        description="random velocity without divergence; periodic boxes only",
        examples=[{"speed": 0.05, "peak": 4}],
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
        """Either a file, or rho and u, or rho and random; `scale` belongs to a file."""
        if self.random is not None:
            twice = [key for key in ("file", "u") if key in self.model_fields_set]
            if twice:
                raise ValueError(f"has random and {twice[0]}; both give the velocity; remove one")
        if self.file is None and "scale" in self.model_fields_set:
            raise ValueError("has scale but no file; it scales the velocity of a file; remove it")
        given = [key for key in ("rho", "u") if key in self.model_fields_set]
        if self.file is not None and given:
            raise ValueError(f"has file and {', '.join(given)}; a file gives both; remove one")
        return self


class Viscosity(Parameters):
    """The kinematic viscosity in lattice units: a number, or velocity * length / reynolds.

    With [[scalar]] it may be a formula of the scalars, such as "0.01*exp(-0.5*T)". Checks,
    `prandtl` and `schmidt` then use its value at the centre of the box at the start.
    """

    viscosity: Annotated[PositiveValue | None, VISCOSITY] = Field(
        None,
        description="kinematic viscosity, cs2 (tau - 1/2); or a formula of scalars, x, y, z and t",
        examples=[0.0256],
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
        """The viscosity, as given or from the Reynolds number; 1 for a formula."""
        if self.viscosity is not None:
            return 1.0 if isinstance(self.viscosity, str) else self.viscosity
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

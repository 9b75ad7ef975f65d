"""The tables of a case file and their keys: what pydantic checks of them one by one."""

from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from mpilbm.choice import choice
from mpilbm.formulas.values import Value
from mpilbm.registry import Parameters, find, registered
from mpilbm.units import Scales, viscosity_from_reynolds

UNKNOWN_STEPS = 2**53 - 1  # while the other tables are checked of a case whose steps are wrong
Size = Annotated[int, Field(gt=0, lt=2**31)]
Positive = Annotated[float, Field(gt=0)]
# of SI, so that no product of powers in units.py overflows: that of a torque has the cell's fifth
Scale = Annotated[float, Field(ge=1e-30, le=1e30)]
LABEL = r"^[A-Za-z][A-Za-z0-9_-]*$"
Label = Annotated[str, Field(pattern=LABEL, max_length=64)]
MOST_TITLE = 200
Title = Annotated[str, Field(max_length=MOST_TITLE)]
Type = Literal["float32", "float64"]


def _default(kind: str, name: str, description: str):
    """A field that holds an object of this kind, by default that of the name with no other keys."""
    return Field(default_factory=lambda: find(kind, name)(), description=description)


class Domain(Parameters):
    """The box: cells of fluid along x, y (and z), and the directions that close on themselves."""

    size: tuple[Size, ...] = Field(
        min_length=2,
        max_length=3,
        description="fluid cells along x, y (and z); faces lie half a cell outside the last cells",
        examples=[[256, 128, 128]],
    )
    periodic: tuple[bool, ...] = Field(
        (),
        description="which directions are periodic, one entry per dimension; empty: none",
        examples=[[True, False, False]],
    )

    @model_validator(mode="after")
    def _as_long(self):
        """One entry of periodic per dimension; none given: no direction is periodic."""
        if not self.periodic:
            object.__setattr__(self, "periodic", (False,) * len(self.size))
        if len(self.periodic) != len(self.size):
            raise ValueError(
                f"size has {len(self.size)} entries, periodic has {len(self.periodic)}; "
                "give both one entry per dimension"
            )
        return self


class Precision(Parameters):
    """Types of arithmetic and of memory; `offset`: populations are stored as deviations.

    `intrinsics`: GPUs take their quick quotients and logarithms, of fewer digits.
    """

    compute: Type = Field("float32", description="type of the arithmetic")
    storage: Literal["float16", "float32", "float64"] = Field(
        "float32", description="type in memory and in messages", examples=["float16"]
    )
    offset: bool = Field(True, description="store populations as deviations from the rest state")
    intrinsics: bool = Field(
        False, description="GPUs: quick division and logarithm with fewer digits; float32 only"
    )

    @model_validator(mode="after")
    def _enough_digits(self):
        if self.storage == "float16" and not (self.offset and self.compute == "float32"):
            raise ValueError(
                'storage = "float16" has digits for small deviations alone; it needs '
                'offset = true and compute = "float32"'
            )
        if self.intrinsics and self.compute != "float32":
            raise ValueError(
                'intrinsics = true needs compute = "float32": GPUs have no quick functions of '
                "more digits; remove it"
            )
        return self


class Steady(Parameters):
    """Stop when |u - u_before| / |u|, taken every so many steps, is below the tolerance."""

    every: Size = Field(description="steps from one comparison to the next", examples=[1000])
    tolerance: Positive = Field(
        description="largest relative change of u between two comparisons", examples=[1e-6]
    )


class Run(Parameters):
    """How long: steps in all, `walltime` in seconds."""

    steps: int = Field(
        ge=0,
        lt=UNKNOWN_STEPS + 1,
        description="last step of the run, counted from the first start",
        examples=[10000],
    )
    steady: Steady | None = Field(
        None,
        description="stop when the flow is steady",
        examples=[{"every": 1000, "tolerance": 1e-6}],
    )
    walltime: Positive | None = Field(
        None,
        description="seconds after which the run writes a checkpoint and stops",
        examples=[3600],
    )

    @property
    def last(self) -> int:
        """The step up to which values that change with time are checked."""
        return 0 if self.steps == UNKNOWN_STEPS else self.steps


class InitialFields(Parameters):
    """Density and velocity at t = 0: numbers, or formulas of x y z nx ny nz pi.

    Or those of `file`, an earlier snapshot, resampled if its size differs. `non_equilibrium` adds
    the stress of the velocity gradient; `iterate`: so many steps at this velocity in which the
    density settles to the pressure that belongs to it.
    """

    rho: Value = Field(1.0, description="density", examples=["1 + 0.01*cos(2*pi*x/nx)"])
    u: tuple[Value, ...] = Field(
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
    iterate: int = Field(
        0,
        ge=0,
        lt=2**31,
        description="steps at a fixed velocity in which the density adapts to the pressure",
        examples=[192],
    )

    @model_validator(mode="after")
    def _one_source(self):
        """Either a file, or rho and u."""
        given = [key for key in ("rho", "u") if key in self.model_fields_set]
        if self.file is not None and given:
            raise ValueError(f"has file and {', '.join(given)}; a snapshot holds both; remove one")
        return self


class Viscosity(Parameters):
    """The kinematic viscosity in lattice units, as such or as velocity * length / reynolds."""

    viscosity: Positive | None = Field(
        None, description="kinematic viscosity, cs2 (tau - 1/2)", examples=[0.0256]
    )
    reynolds: Positive | None = Field(
        None, description="Reynolds number; requires length and velocity", examples=[1000]
    )
    length: Positive | None = Field(
        None, description="length of the Reynolds number", examples=[256]
    )
    velocity: Positive | None = Field(
        None, description="velocity of the Reynolds number", examples=[0.1]
    )

    @model_validator(mode="after")
    def _one_way(self):
        """Either `viscosity`, or all of the other three."""
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
        """The viscosity, however it is given."""
        if self.viscosity is not None:
            return self.viscosity
        return viscosity_from_reynolds(self.reynolds, self.length, self.velocity)


class Units(Parameters):
    """What lattice units are in SI: a cell's side in m, a step in s, rho = 1 in kg/m^3.

    In place of `step` the `velocity` in m/s of one cell a step.
    """

    cell: Scale = Field(description="side of a cell", examples=[0.001])
    step: Scale | None = Field(
        None, description="duration of a step; or give velocity", examples=[5e-5]
    )
    velocity: Scale | None = Field(
        None, description="speed of one cell per step; or give step", examples=[20]
    )
    density: Scale = Field(description="density of rho = 1", examples=[998])

    @model_validator(mode="after")
    def _one_way(self):
        """Either step or velocity."""
        if (self.step is None) == (self.velocity is None):
            found = "neither" if self.step is None else "both"
            raise ValueError(
                f"has {found} of step and velocity; give one: the seconds of a step, or the m/s "
                "that one cell a step stands for"
            )
        return self

    def scales(self) -> Scales:
        """The same for conversions."""
        step = self.cell / self.velocity if self.step is None else self.step
        return Scales(self.cell, step, self.density)


class FluidTable(Viscosity):
    """One of several fluids."""

    label: Label = Field(
        description="name of the fluid in the keys of other tables and in files", examples=["oil"]
    )
    collision: choice("collisions") = _default(
        "collisions", "bgk", "collision operator of this fluid"
    )
    force: choice("forcing") = Field(None, description="force on this fluid")
    initial: InitialFields = Field(
        InitialFields(), description="initial fields of this fluid", examples=[{"rho": 0.5}]
    )


class Body(Parameters):
    """A solid in the flow: a shape, or the cells of a mask file, with its own boundary."""

    label: Label = Field(
        "", description="name of the body in files and outputs; none: its index", examples=["ball"]
    )
    shape: choice("shapes") = Field(None, description="shape of the body; or give mask")
    mask: str | None = Field(
        None,
        description="file of the solid cells, 1 in solid and 0 in fluid; or give shape",
        examples=["rock.npy"],
    )
    boundary: choice("boundaries") = Field(description="condition on the surface")

    @model_validator(mode="after")
    def _one_solid(self):
        """Exactly one of shape and mask; the boundary of a body has no faces."""
        if (self.shape is None) == (self.mask is None):
            found = "neither" if self.shape is None else "both"
            raise ValueError(f"has {found} of shape and mask; give exactly one")
        if self.boundary.where:
            raise ValueError(
                "boundary.where names faces of the box, but a body's boundary is its surface; "
                "remove where"
            )
        return self


def _table_or_array(value) -> str:
    return "<array>" if isinstance(value, list | tuple) else "<table>"


class CaseFile(Parameters):
    """A case as it stands in the file."""

    title: Title = Field(
        "", description="name of the case in reports and files", examples=["Lid-driven cavity"]
    )
    lattice: choice("lattices") = Field(description="velocity set")
    domain: Domain = Field(
        description="size of the box and its periodic directions", examples=[{"size": [64, 64]}]
    )
    fluid: Annotated[
        Annotated[Viscosity, Tag("<table>")]
        | Annotated[tuple[FluidTable, ...], Field(min_length=1), Tag("<array>")],
        Discriminator(_table_or_array),
    ] = Field(
        description="viscosity; an array of tables describes several fluids",
        examples=[{"viscosity": 0.01}],
    )
    collision: choice("collisions") = _default("collisions", "bgk", "collision operator")
    force: choice("forcing") = Field(None, description="force per volume on the fluid")
    initial: InitialFields = Field(
        InitialFields(), description="density and velocity at the start", examples=[{"rho": 1.0}]
    )
    coupling: choice("couplings") = Field(None, description="how several fluids interact")
    units: Units | None = Field(
        None,
        description="SI values of the lattice units",
        examples=[{"cell": 0.001, "step": 5e-5, "density": 998}],
    )
    precision: Precision = Field(
        Precision(), description="number types", examples=[{"compute": "float64"}]
    )
    layout: choice("layouts") = _default("layouts", "ab", "memory layout of the populations")
    backend: choice("backends") = _default("backends", "auto", "device that runs the kernels")
    halo: choice("halo") = _default("halo", "auto", "how neighbouring ranks exchange planes")
    boundary: tuple[choice("boundaries"), ...] = Field(
        (), description="conditions on the faces that are not periodic; on edges the last one wins"
    )
    body: tuple[Body, ...] = Field(
        (),
        description="solids in the flow",
        examples=[
            [
                {
                    "shape": {"name": "sphere", "centre": [32, 32, 32], "radius": 6.5},
                    "boundary": {"name": "bounce_back"},
                }
            ]
        ],
    )
    run: Run = Field(description="duration of the run", examples=[{"steps": 1000}])
    output: tuple[choice("outputs"), ...] = Field((), description="files that the run writes")


def schema() -> dict[str, Any]:
    """JSON schema of a case file, with everything registered by now; not to be changed."""
    return _schema(registered())


@lru_cache(maxsize=1)
def _schema(_: frozenset) -> dict[str, Any]:
    """Takes some 0.3 s, and each unknown key needs it."""
    return CaseFile.model_json_schema() | {"title": "mpilbm case"}

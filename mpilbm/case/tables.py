"""The tables of a case file: their keys, types and limits, which pydantic checks one by one.

The names of tables that have a checked counterpart end in `Table` or `File`: FluidTable and Fluid,
InitialTable and InitialFields, UnitsTable and Units, CaseFile and Case.
"""

from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from mpilbm.backends import Backend
from mpilbm.choice import Choice
from mpilbm.formulas.values import Value
from mpilbm.layouts import Layout
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.registry import Parameters, find, registered
from mpilbm.units import Units, viscosity_from_reynolds

MOST_STEPS = 2**53 - 1
Size = Annotated[int, Field(gt=0, lt=2**31)]
Positive = Annotated[float, Field(gt=0)]
# a value in SI; within these limits no unit overflows, not even torque with its cell^5
Scale = Annotated[float, Field(ge=1e-30, le=1e30)]
LABEL = r"^[A-Za-z][A-Za-z0-9_-]*$"
Label = Annotated[str, Field(pattern=LABEL, max_length=64)]
MOST_TITLE = 200
Title = Annotated[str, Field(max_length=MOST_TITLE)]
Type = Literal["float32", "float64"]


def _default(kind: str, name: str, description: str) -> Any:
    """A field for an object of this kind; the default is the class `name` without parameters."""
    return Field(default_factory=lambda: find(kind, name)(), description=description)


class Domain(Parameters):
    """The box: fluid cells along x, y (and z), and the periodic directions."""

    size: tuple[Size, ...] = Field(
        min_length=2,
        max_length=3,
        description="fluid cells along x, y (and z); faces lie half a cell outside the last cells",
        examples=[[256, 128, 128]],
    )
    periodic: tuple[bool, ...] = Field(
        (),
        description="whether each direction is periodic, one entry per dimension; empty: none is",
        examples=[[True, False, False]],
    )

    @model_validator(mode="after")
    def _as_long(self) -> Self:
        """One entry of periodic per dimension; by default no direction is periodic."""
        if not self.periodic:
            object.__setattr__(self, "periodic", (False,) * len(self.size))
        if len(self.periodic) != len(self.size):
            raise ValueError(
                f"size has {len(self.size)} entries, periodic has {len(self.periodic)}; "
                "give both one entry per dimension"
            )
        return self


class Precision(Parameters):
    """Number types in arithmetic and in memory.

    `offset` stores populations as deviations from the fluid at rest, which keeps more digits. The
    storage "mixed" is defined by the layout; see `moments`.
    `intrinsics` selects fast division and logarithm of a GPU, with fewer digits.
    """

    compute: Type = Field("float32", description="type of the arithmetic")
    storage: Literal["float16", "float32", "float64", "mixed"] = Field(
        "float32", description="type in memory and in messages", examples=["float16"]
    )
    offset: bool = Field(True, description="store populations as deviations from the rest state")
    intrinsics: bool = Field(
        False, description="GPUs: fast division and logarithm with fewer digits; float32 only"
    )

    @model_validator(mode="after")
    def _enough_digits(self) -> Self:
        bits_16 = self.storage in ("float16", "mixed")
        if bits_16 and not (self.offset and self.compute == "float32"):
            raise ValueError(
                f'storage = "{self.storage}" has digits for small deviations only; it requires '
                'offset = true and compute = "float32"'
            )
        if self.intrinsics and self.compute != "float32":
            raise ValueError(
                'intrinsics = true requires compute = "float32": GPUs have no fast functions with '
                "more digits; remove it"
            )
        return self


class Steady(Parameters):
    """Stop when |u - u_previous| / |u|, computed every `every` steps, is below the tolerance."""

    every: Size = Field(description="steps from one comparison to the next", examples=[1000])
    tolerance: Positive = Field(
        description="largest relative change of u between two comparisons", examples=[1e-6]
    )


class Run(Parameters):
    """The last step of the run, and two conditions that end it earlier."""

    steps: int = Field(
        ge=0,
        lt=MOST_STEPS + 1,
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
        return self.steps


class UnreadRun(Run):
    """Replaces a [run] table that has errors while the other tables are checked."""

    steps: int = MOST_STEPS

    @property
    def last(self) -> int:
        """Values that change with time are checked at t = 0 only."""
        return 0


class InitialTable(Parameters):
    """Density and velocity at t = 0: numbers, formulas of x y z nx ny nz pi, or a snapshot.

    `file` is a snapshot of an earlier run, which is resampled if its size differs.
    `non_equilibrium` adds the stress of the velocity gradient to the populations. `iterate` is a
    number of steps at fixed velocity, in which the density adapts to the pressure of this flow.
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


class UnitsTable(Parameters):
    """SI values of the lattice units: side of a cell in m, step in s, rho = 1 in kg/m^3.

    `velocity`, the speed of one cell per step in m/s, may be given in place of `step`.
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
    def _one_way(self) -> Self:
        """Either step or velocity."""
        if (self.step is None) == (self.velocity is None):
            found = "neither" if self.step is None else "both"
            raise ValueError(
                f"has {found} of step and velocity; give one: the duration of a step in s, or the "
                "speed of one cell per step in m/s"
            )
        return self

    def checked(self) -> Units:
        """The units, whichever of `step` and `velocity` is given."""
        if self.step is not None:
            return Units(self.cell, self.step, self.density)
        assert self.velocity is not None  # by _one_way
        return Units(self.cell, self.cell / self.velocity, self.density)


class FluidTable(Viscosity):
    """One of several fluids."""

    label: Label = Field(
        description="name of the fluid in the keys of other tables and in files", examples=["oil"]
    )
    collision: Annotated[Collision, Choice("collisions")] = _default(
        "collisions", "bgk", "collision operator of this fluid"
    )
    force: Annotated[Forcing | None, Choice("forcing")] = Field(
        None, description="force on this fluid"
    )
    initial: InitialTable = Field(
        InitialTable(), description="initial fields of this fluid", examples=[{"rho": 0.5}]
    )


class Body(Parameters):
    """A solid in the flow: a shape or the solid cells of a mask file, with its own boundary."""

    label: Label = Field(
        "", description="name of the body in files and outputs; empty: its index", examples=["ball"]
    )
    shape: Annotated[Any, Choice("shapes")] = Field(
        None, description="shape of the body; or give mask"
    )
    mask: str | None = Field(
        None,
        description="file of the cells: 0 is fluid, any other value is solid; or give shape",
        examples=["rock.npy"],
    )
    boundary: Annotated[Boundary, Choice("boundaries")] = Field(
        description="condition on the surface"
    )

    @model_validator(mode="after")
    def _one_solid(self) -> Self:
        """Exactly one of shape and mask; no `where` in the boundary."""
        if (self.shape is None) == (self.mask is None):
            found = "neither" if self.shape is None else "both"
            raise ValueError(f"has {found} of shape and mask; give exactly one")
        if self.boundary.where:
            raise ValueError(
                "boundary.where names faces of the box, but a body's boundary is its surface; "
                "remove where"
            )
        return self


def _table_or_array(value: object) -> str:
    return "<array>" if isinstance(value, list | tuple) else "<table>"


class CaseFile(Parameters):
    """All tables of a case file."""

    title: Title = Field(
        "", description="name of the case in reports and files", examples=["Lid-driven cavity"]
    )
    lattice: Annotated[Lattice, Choice("lattices")] = Field(description="velocity set")
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
    collision: Annotated[Collision, Choice("collisions")] = _default(
        "collisions", "bgk", "collision operator"
    )
    force: Annotated[Forcing | None, Choice("forcing")] = Field(
        None, description="force per volume on the fluid"
    )
    initial: InitialTable = Field(
        InitialTable(), description="density and velocity at the start", examples=[{"rho": 1.0}]
    )
    coupling: Annotated[Coupling | None, Choice("couplings")] = Field(
        None, description="how several fluids interact"
    )
    units: UnitsTable | None = Field(
        None,
        description="SI values of the lattice units",
        examples=[{"cell": 0.001, "step": 5e-5, "density": 998}],
    )
    precision: Precision = Field(
        Precision(), description="number types", examples=[{"compute": "float64"}]
    )
    layout: Annotated[Layout, Choice("layouts")] = _default(
        "layouts", "auto", "memory layout of the populations"
    )
    backend: Annotated[Backend, Choice("backends")] = _default(
        "backends", "auto", "device that runs the kernels"
    )
    halo: Annotated[Any, Choice("halo")] = _default(
        "halo", "auto", "how neighbouring ranks exchange planes"
    )
    boundary: tuple[Annotated[Boundary, Choice("boundaries")], ...] = Field(
        (),
        description="conditions on the faces that are not periodic; edges belong to the last one",
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
    output: tuple[Annotated[Any, Choice("outputs")], ...] = Field(
        (), description="files that the run writes"
    )


def schema() -> dict[str, Any]:
    """JSON schema of a case file, with all classes registered at present; do not modify it."""
    return _schema(registered())


@lru_cache(maxsize=1)
def _schema(_: frozenset) -> dict[str, Any]:
    """The cached schema: it takes 0.3 s, and each message about an unknown key needs it."""
    return CaseFile.model_json_schema() | {"title": "mpilbm case"}

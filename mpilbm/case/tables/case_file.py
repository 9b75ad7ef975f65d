"""All tables of a case file, and their JSON schema."""

from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from mpilbm.backends import Backend
from mpilbm.case.tables import MOST_STEPS, Label, Positive, Title, default
from mpilbm.case.tables.fluids import FluidTable, InitialTable, Viscosity
from mpilbm.case.tables.scalars import Buoyancy, ScalarTable, of_body, one_condition
from mpilbm.case.tables.units import UnitsTable
from mpilbm.core.quantity import SECONDS, STEPS
from mpilbm.core.registry import Choice, Parameters, registered
from mpilbm.layouts import Layout
from mpilbm.model.box import Domain, Precision, Size
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.motions import Motion
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.sponges import Sponge

VELOCITY = "velocity"  # what `Steady` compares by default


class Steady(Parameters):
    """Stop when the flow changes by less than the tolerance in `every` steps.

    The change is |u - u_previous| / |u| over the fluid cells, or |k - k_previous| / |k| of the
    number k of the output that `of` names, such as the permeability. With `by = "error"` a flow
    that oscillates ends, too: the standard error of the mean of k over the second half of all
    comparisons, relative to this mean, is below the tolerance, 0.01 for a drag known to 1 %. Of
    several numbers, such as the drag of each body, the largest change or error counts.
    """

    every: Annotated[Size, STEPS] = Field(
        description="steps from one comparison to the next", examples=[1000]
    )
    tolerance: Positive = Field(
        description="largest relative change between two comparisons", examples=[1e-6]
    )
    of: str = Field(
        VELOCITY,
        description="`velocity`, or the name of an output of the case that offers a number",
        examples=["permeability"],
    )
    by: Literal["change", "error"] = Field(
        "change",
        description="`change`: relative change since the previous comparison; `error`: relative "
        "standard error of the mean of the number of an output",
    )


class Run(Parameters):
    """The last step of the run, and two conditions that end it earlier."""

    steps: Annotated[int, STEPS] = Field(
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
    walltime: Annotated[Positive | None, SECONDS] = Field(
        None,
        description="seconds after which the run writes a checkpoint and stops",
        examples=[3600],
    )

    @property
    def last(self) -> int:
        """The step up to which values that change with time are checked."""
        return self.steps

    @property
    def compares_velocity(self) -> bool:
        """Whether the velocity of all cells is compared with the previous one."""
        return self.steady is not None and self.steady.of == VELOCITY


class UnreadRun(Run):
    """Replaces a [run] table that has errors while the other tables are checked."""

    steps: int = MOST_STEPS

    @property
    def last(self) -> int:
        """Values that change with time are checked at t = 0 only."""
        return 0


OnScalar = Annotated[
    ScalarBoundary, Choice("scalar_boundaries", of_body), BeforeValidator(one_condition)
]


class Body(Parameters):
    """A solid in the flow: a shape or the solid cells of a mask file, with its own boundary.

    A shape that reaches through a periodic face continues at the opposite face. There, formulas of
    its `velocity` and the torque on it refer to the coordinates in which the shape is given, as if
    the body were in one piece: its centre may lie on a face or outside the box. This requires a
    body shorter than the box along this axis. A shape that is infinite along a periodic axis, or
    longer than four boxes, is not repeated along this axis.
    """

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
    motion: Annotated[Motion | None, Choice("motions")] = Field(
        None,
        description="how the body moves; without it the body is at rest",
        examples=[{"name": "rotation", "rate": 0.001}],
    )
    scalar: dict[str, OnScalar] = Field(
        {},
        description="condition on each scalar, by its label: value, flux, h and ambient, or "
        "conjugate; without an entry the body is adiabatic",
        examples=[{"T": {"value": 1.0}}],
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
        description="viscosity; an array of tables describes several fluids; may be omitted if "
        "units.fluid names one",
        examples=[{"viscosity": 0.01}],
    )
    collision: Annotated[Collision, Choice("collisions")] = default(
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
    scalar: tuple[ScalarTable, ...] = Field(
        (),
        description="scalars that the flow carries: temperatures, concentrations",
        examples=[[{"label": "T", "diffusivity": 0.01}]],
    )
    buoyancy: Buoyancy | None = Field(
        None,
        description="force by which scalars act on the flow",
        examples=[{"gravity": [0, -1e-4], "T": {"beta": 1.0, "reference": 0.5}}],
    )
    units: UnitsTable | None = Field(
        None,
        description="SI values of the lattice units",
        examples=[{"cell": 0.001, "step": 5e-5, "density": 998}],
    )
    precision: Precision = Field(
        Precision(), description="number types", examples=[{"compute": "float64"}]
    )
    layout: Annotated[Layout, Choice("layouts")] = default(
        "layouts", "auto", "memory layout of the populations"
    )
    backend: Annotated[Backend, Choice("backends")] = default(
        "backends", "auto", "device that runs the kernels"
    )
    halo: Annotated[Any, Choice("halo")] = default(
        "halo", "auto", "how neighbouring ranks exchange planes"
    )
    boundary: tuple[Annotated[Boundary, Choice("boundaries")], ...] = Field(
        (),
        description="conditions on the faces that are not periodic, in any order",
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
    sponge: tuple[Sponge, ...] = Field(
        (),
        description="layers at faces in which the viscosity rises",
        examples=[[{"where": ["x+"], "thickness": 64}]],
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
    found = CaseFile.model_json_schema() | {"title": "mpilbm case"}
    # [units] may name a fluid, which gives the viscosity
    return found | {"required": [key for key in found["required"] if key != "fluid"]}

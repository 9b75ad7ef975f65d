"""All tables of a case file, and their JSON schema."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from mpilbm.backends import Backend
from mpilbm.case.tables.bodies import Body
from mpilbm.case.tables.fluids import FluidTable, InitialTable, Viscosity
from mpilbm.case.tables.run import Run
from mpilbm.case.tables.scalars import Buoyancy, ScalarTable
from mpilbm.case.tables.scales import UnitsTable
from mpilbm.case.tables.values import Title, default
from mpilbm.core.registry import Choice, Parameters, registered
from mpilbm.layouts import Layout
from mpilbm.model.box import Domain, Precision
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice


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

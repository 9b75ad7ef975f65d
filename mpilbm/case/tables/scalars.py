"""Scalars that the flow carries, and the force by which they act on it."""

import re
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from mpilbm.case.tables import Positive, default
from mpilbm.core.formulas.parser import FUNCTIONS, NAMES
from mpilbm.core.formulas.values import Value
from mpilbm.core.printable import shown
from mpilbm.core.quantity import (
    DIFFUSIVITY,
    EXPANSION,
    GRAVITY,
    HEAT_CAPACITY,
    KELVIN,
    SCALAR_SOURCE,
)
from mpilbm.core.registry import Choice, Parameters, names
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.scalars.collisions import ScalarCollision

USUAL = {2: "D2Q5", 3: "D3Q7"}  # the lattice of a scalar, by the number of dimensions
# names that formulas and fields of a flow have already
TAKEN = (*NAMES, *FUNCTIONS, "u", "rho", "pressure", "gravity", "vorticity", "q_criterion")
SCALAR_LABEL = r"^[A-Za-z][A-Za-z0-9_]*$"
ScalarLabel = Annotated[str, Field(pattern=SCALAR_LABEL, max_length=32)]


class ScalarInitial(Parameters):
    """A scalar at t = 0."""

    value: Annotated[Value, KELVIN] = Field(
        0.0,
        description="number, formula of x y z nx ny nz, or file.npy of all cells",
        examples=["1 - x/nx"],
    )


class ScalarTable(Parameters):
    """A scalar phi that the flow carries, such as a temperature or a concentration.

    d phi/dt + div(u phi) = div(D grad phi) + S. Faces that no entry of `boundary` names, and bodies
    without an entry `scalar`, are adiabatic. The collision of the step from t to t + 1 uses S at
    time t + 1.
    """

    label: ScalarLabel = Field(
        description="name of the scalar in formulas, outputs and other tables", examples=["T"]
    )
    diffusivity: Annotated[Positive | None, DIFFUSIVITY] = Field(
        None, description="diffusivity D", examples=[0.01]
    )
    prandtl: Positive | None = Field(
        None, description="D = viscosity / prandtl, for a temperature", examples=[0.71]
    )
    schmidt: Positive | None = Field(
        None, description="D = viscosity / schmidt, for a concentration", examples=[1000]
    )
    lattice: Annotated[Lattice, Choice("scalar_lattices", name_alone=True)] | None = Field(
        None, description="velocity set; its name is enough; none: D2Q5 or D3Q7", examples=["D3Q7"]
    )
    collision: Annotated[ScalarCollision, Choice("scalar_collisions")] = default(
        "scalar_collisions", "trt", "collision of the populations"
    )
    initial: ScalarInitial = Field(
        ScalarInitial(), description="the scalar at the start", examples=[{"value": 0.5}]
    )
    source: Annotated[Value, SCALAR_SOURCE] = Field(
        0.0,
        description="source S per volume and step: number, or formula of x y z t and scalars",
        examples=["-0.001*T"],
    )
    heat_capacity: Annotated[Positive | None, HEAT_CAPACITY] = Field(
        None,
        description="of a volume, for a temperature; then fluxes may be in W/m^2",
        examples=[4.18e6],
    )
    boundary: tuple[Annotated[ScalarBoundary, Choice("scalar_boundaries")], ...] = Field(
        (),
        description="conditions on faces of the box",
        examples=[[{"name": "value", "where": ["x-"], "value": 1.0}]],
    )

    @field_validator("label")
    @classmethod
    def _free(cls, label: str) -> str:
        if label in TAKEN:
            raise ValueError(
                f"found '{label}', which formulas or outputs use; allowed: any other "
                "name; call it T or c"
            )
        return label

    @model_validator(mode="after")
    def _one_diffusivity(self) -> Self:
        given = [key for key in ("diffusivity", "prandtl", "schmidt") if getattr(self, key)]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "has no diffusivity"
            raise ValueError(f"{found}; give one of diffusivity, prandtl and schmidt")
        return self


class Expansion(Parameters):
    """How a scalar changes the density: rho = rho_0 (1 - beta (phi - reference))."""

    beta: Annotated[float, EXPANSION] = Field(
        description="expansion coefficient; positive if warm fluid rises, negative for a heavy "
        "solute",
        examples=[1.0],
    )
    reference: Annotated[float, KELVIN] = Field(
        0.0, description="value at which there is no force", examples=[0.5]
    )


class Buoyancy(Parameters):
    """Boussinesq approximation: force = -rho_0 gravity sum_k beta_k (phi_k - reference_k).

    Each further key is the label of a scalar, with its `beta` and `reference`. With a positive
    `beta` fluid of a larger value rises, against gravity.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    gravity: Annotated[tuple[float, ...], GRAVITY] = Field(
        min_length=2,
        max_length=3,
        description="acceleration of gravity, one entry per dimension",
        examples=[[0, -1e-4]],
    )
    __pydantic_extra__: dict[str, Expansion]

    @property
    def expansions(self) -> dict[str, Expansion]:
        """The tables of the scalars, by label."""
        return dict(self.__pydantic_extra__)


# the name of a condition by the key that its table has
BODY_KINDS = {"value": "value", "flux": "flux", "h": "robin", "conjugate": "conjugate"}


def of_body(table: Any) -> Any:
    """The table of a body's condition on a scalar with its name, which follows from its keys."""
    if not isinstance(table, dict) or "name" in table:
        return table
    kind = next((kind for key, kind in BODY_KINDS.items() if key in table), None)
    return table if kind is None and table else {"name": kind or "flux"} | table


def one_condition(table: Any) -> Any:
    """The table of a body's condition; ValueError if its keys do not select one condition."""
    keys = table if isinstance(table, dict) else {}
    if "where" in keys:
        raise ValueError(
            "where names faces of the box, but this condition holds at the surface of "
            "the body; remove where"
        )
    given = [key for key in BODY_KINDS if key in keys]
    if "name" in keys or len(given) == 1 or table == {}:
        return table
    found = " and ".join(given) or shown(table)
    raise ValueError(
        f"found {found}; allowed: a table with one of the keys {', '.join(BODY_KINDS)}"
        ", or {} for an adiabatic body; write {value = 1.0}"
    )


def lattices(dimensions: int) -> list[str]:
    """Names of the lattices of scalars in so many dimensions."""
    return [name for name in names("scalar_lattices") if re.match(f"D{dimensions}Q", name)]

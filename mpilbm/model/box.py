"""The box, the number types, the steps, and what outputs need from kernels and geometry."""

from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, Self

from pydantic import Field, model_validator

from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import Parameters

Size = Annotated[int, Field(gt=0, lt=2**31)]
Type = Literal["float32", "float64"]


class Domain(Parameters):
    """The box: fluid cells along x, y (and z), and the periodic directions."""

    size: Annotated[tuple[Size, ...], LENGTH] = Field(
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


@dataclass(frozen=True)
class Needs:
    """What the outputs of a case need from kernels and geometry; by default nothing.

    weighed      numbers of the bodies whose forces are measured
    framed       whether one of these bodies reaches through a periodic face
    split        whether the pressure and viscous parts of these forces are needed
    by_cell      whether the forces on bodies of each cell next to them are needed
    sampled      whether samples of the flow are added, which takes kernels of their own
    roles        the roles of optional kernels, see `codegen.program.Kernel`
    transported  numbers of the scalars whose transport is measured, in walls and in the fluid
    """

    weighed: tuple[int, ...] = ()
    framed: bool = False
    split: bool = False
    by_cell: bool = False
    sampled: bool = False
    roles: frozenset[str] = frozenset()
    transported: tuple[int, ...] = ()


class Run(Protocol):
    """The part of the table [run] that kernels and geometry depend on."""

    @property
    def steps(self) -> int:
        """The number of time steps."""

    @property
    def last(self) -> int:
        """The step up to which values that change with time are checked."""

    @property
    def compares_velocity(self) -> bool:
        """Whether the velocity of all cells is compared with the previous one."""

"""Profiles of boundary layers: velocities that rise with the height above ground or a pipe wall."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mpilbm.core.formulas.parser import is_formula
from mpilbm.core.quantity import LENGTH
from mpilbm.core.registry import Parameters
from mpilbm.model.case import Case


class Profile(Parameters):
    """The factor of the velocity at the height h, 1 at the height `reference`.

        power    (h / reference)^exponent
        log      ln((h + roughness) / roughness) / ln((reference + roughness) / roughness)

    h is the coordinate along `axis` above `ground`; the factor is 0 below. In a pipe, h is
    `reference` less the distance from `centre`: with `reference` = its radius the velocity is that
    on its axis, and with `power` (1 + exponent) (2 + exponent) / 2 times the mean.
    [log: Richards & Hoxey 1993, J. Wind Eng. Ind. Aerodyn. 46-47, 145]
    """

    name: Literal["power", "log"] = Field(description="law of the height", examples=["log"])
    reference: Annotated[float, LENGTH] = Field(
        gt=0, description="height above ground of the velocity that is given", examples=[100]
    )
    exponent: float | None = Field(
        None,
        gt=0,
        lt=2,
        description="of `power`; 1/7 is usual over open land and in pipes",
        examples=[0.14],
    )
    roughness: Annotated[float | None, LENGTH] = Field(
        None, gt=0, description="length z_0 of `log`", examples=[0.05]
    )
    axis: Literal["x", "y", "z"] = Field("z", description="the upward axis", examples=["y"])
    ground: Annotated[float, LENGTH] = Field(
        0.0, description="coordinate of the ground along the axis", examples=[2]
    )
    centre: Annotated[tuple[float, ...] | None, LENGTH] = Field(
        None,
        description="a pipe in place of the ground: its centre, the coordinates along the face in "
        "the order x, y, z",
        examples=[[11, 11]],
    )

    @model_validator(mode="after")
    def _own_key(self) -> Self:
        """The key of the law, and not that of the other one."""
        keys = {"power": "exponent", "log": "roughness"}
        (other,) = (key for name, key in keys.items() if name != self.name)
        if getattr(self, keys[self.name]) is None:
            raise ValueError(f"has no {keys[self.name]}; '{self.name}' needs one")
        if getattr(self, other) is not None:
            raise ValueError(f"has {other}; '{self.name}' has none; remove it")
        if self.centre is not None and {"axis", "ground"} & self.model_fields_set:
            raise ValueError("has a centre, and an axis or ground; keep the centre, or the others")
        return self

    def problem(self, case: Case, faces: tuple[str, ...]) -> str:
        """Why it cannot be at these faces; empty if it can."""
        if self.centre is not None:
            return ""
        D = case.dimensions
        if self.axis not in "xyz"[:D]:
            return f"axis: found '{self.axis}'; allowed in 2D: 'x' and 'y'"
        if any(face[0] == self.axis for face in faces):
            return (
                f"axis: found '{self.axis}', along which a face in where has one height; allowed: "
                "an axis along the faces; change it, or remove the profile"
            )
        n = case.domain.size["xyz".index(self.axis)]
        if self.ground >= n - 0.5:
            return (
                f"ground: found {self.ground:g}, above which there is no cell; allowed: less than "
                f"{n - 0.5:g}, the centre of the last cell along {self.axis}"
            )
        return ""

    def times(self, value: float | str, along: str) -> float | str:
        """The formula of a number or formula times the factor.

        0 stays a number, and a text that is no formula stays as it is: it is refused later.
        along: the axes along the face.
        """
        if value == 0 or (isinstance(value, str) and not is_formula(value)):
            return value
        height = f"{self.axis} - ({self.ground!r})"
        if self.centre is not None:
            squares = (f"({a} - {c!r})**2" for a, c in zip(along, self.centre, strict=True))
            height = f"{self.reference!r} - sqrt({' + '.join(squares)})"
        above = f"max({height}, 0)"
        if self.name == "log":
            z_0, whole = repr(self.roughness), f"({self.reference!r} + {self.roughness!r})"
            return f"({value})*log(({above} + {z_0})/{z_0})/log({whole}/{z_0})"
        rising = f"exp({self.exponent!r}*log(max({above}, 1e-9)/{self.reference!r}))"
        return f"({value})*where({above} > 0, {rising}, 0)"

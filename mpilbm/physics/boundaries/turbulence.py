"""Turbulence at an inlet: velocities that fluctuate with given stresses and lengths."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, model_validator

from mpilbm.core.formulas.parser import Formula, FormulaError
from mpilbm.core.formulas.values import Value, names_in
from mpilbm.core.quantity import LENGTH, SPEED_SQUARED
from mpilbm.core.registry import Parameters
from mpilbm.model.case import Case
from mpilbm.model.findings import WARNING, Finding
from mpilbm.physics.inlet_fluctuations import PAIRS, Fluctuation, Inlet

LARGE = 0.3  # intensity from which on fluid leaves through the inlet now and then
FEW = 4  # lengths across a face below which few eddies enter at a time


class Turbulence(Parameters):
    """Fluctuations u' that are added to the given velocity u of an inlet.

        u'_i = sum_j a_ij xi_j,  a a^T = R,  <u'_i u'_j> = R_ij

    R is given by `stresses`, or by `intensity` I as R_ij = (I |u|)^2 delta_ij. xi are random
    numbers with a Gaussian correlation of the integral length `length` along the face and the
    integral time `length_along` / U, where U is the mean of the given normal velocity over the
    face. Their mean through the face is 0 at any time, so that the flow rate is that of u; R_ij is
    exact in the mean over the face. u' rises with the `ramp` of the velocity. It depends on the
    seed, the face and the time only: it is the same on any number of ranks and after a restart.
    u' is not free of divergence: the pressure fluctuates near the inlet.
    [Klein, Sadiki & Janicka 2003, J. Comput. Phys. 186, 652; Lund, Wu & Squires 1998, J. Comput.
    Phys. 140, 233; Kim, Castro & Xie 2013, Comput. Fluids 84, 56]
    """

    intensity: Value | None = Field(
        None,
        description="rms of each component, relative to the local speed: number, or formula of "
        "x, y, z",
        examples=[0.05],
    )
    stresses: Annotated[tuple[Value, ...] | None, SPEED_SQUARED] = Field(
        None,
        description="in place of `intensity`: Reynolds stresses uu, vv, ww, uv, uw, vw, numbers or "
        "formulas of x, y, z",
        examples=[[1e-5, 5e-6, 5e-6, 0, 0, 0]],
    )
    length: Annotated[float, LENGTH] = Field(
        ge=2, description="integral length of the eddies along the face", examples=[10]
    )
    length_along: Annotated[float | None, LENGTH] = Field(
        None, ge=2, description="that along the flow; default: `length`", examples=[20]
    )
    seed: int = Field(0, ge=0, lt=2**63, description="another number gives other eddies")

    _inlet: Inlet | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _one_strength(self) -> Self:
        """Refuse both or neither of intensity and stresses, and a wrong number of stresses."""
        if (self.intensity is None) == (self.stresses is None):
            raise ValueError("needs either intensity or stresses; give one of them")
        if self.stresses is not None and len(self.stresses) != len(PAIRS):
            raise ValueError(
                f"has {len(self.stresses)} stresses; allowed: 6, uu, vv, ww, uv, uw, vw"
            )
        return self

    def resolved(
        self,
        case: Case,
        where: Sequence[str],
        velocity: Any,
        fluid: Callable[[str], NDArray[np.bool_]],
    ) -> Self:
        """The turbulence of the faces in `where`, at which the case gives this velocity.

        fluid: returns where cells of a face are fluid, bool, slowest axis first. Nothing is
        computed before it is used.
        """
        found = self.model_copy()
        found._inlet = Inlet(self, case, where, velocity, fluid)
        return found

    @property
    def inlet(self) -> Inlet:
        """The face, after `resolved`."""
        assert self._inlet is not None, "value_files.resolved is called before"
        return self._inlet

    def components(self, ramp: int) -> tuple[Fluctuation, ...]:
        """The components of u' along x, y and z."""
        return tuple(Fluctuation(lambda: self.inlet, k, ramp) for k in range(3))

    def problems(self, case: Case) -> list[str]:
        """Boxes, faces and velocities without turbulence, and values that are no stresses."""
        if case.dimensions != 3:
            return ["found in 2D; allowed: 3D, in which eddies live; remove it"]
        if case.lattice.staggered:
            return [f"is not defined on {case.lattice.name}; choose another lattice, or remove it"]
        for key, value in self._formulas():
            try:
                if "t" in Formula(value, names_in(3)).names:
                    return [f"{key}: '{value}' depends on t; allowed: formulas of x, y and z"]
            except FormulaError as error:
                return [f"{key}: {error}"]
        return self.inlet.problems()

    def warnings(self, case: Case) -> list[Finding]:
        """Fluid that leaves through the inlet, and eddies that are large for the face."""
        found, inlet = [], self.inlet
        most = inlet.largest_intensity
        if most > LARGE:
            text = (
                f"the rms of a component of u' is up to {most:.2g} times the mean speed, so that "
                f"fluid leaves through the inlet now and then; use at most {LARGE:g}"
            )
            found.append(Finding(WARNING, "", text))
        side = min(inlet.shape)
        if side < FEW * self.length:
            text = (
                f"length: found {self.length:g} at {inlet.face} with {side} cells across: few "
                "eddies enter at a time, and the constant flow rate changes them; use at most "
                f"{side / FEW:.3g} cells"
            )
            found.append(Finding(WARNING, "", text))
        return found

    def _formulas(self) -> list[tuple[str, str]]:
        """The formulas, with their keys."""
        found: list[tuple[str, Any]] = [("intensity", self.intensity)]
        found += [(f"stresses.{k}", value) for k, value in enumerate(self.stresses or ())]
        return [(key, value) for key, value in found if isinstance(value, str)]

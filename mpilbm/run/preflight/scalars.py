"""The lines on scalars in the report of `mpilbm check`."""

from math import sqrt
from typing import Any

from mpilbm.case.model import Case, Scalar
from mpilbm.core.units import tau_from_viscosity
from mpilbm.run.preflight.report import Line

FAST = 0.3  # speed of free fall above which the flow is compressible


def scalar_lines(case: Case, scalar: Scalar) -> list[Line]:
    """Diffusivity, conditions on faces, and the Rayleigh number of a scalar that acts."""
    nu = case.fluids[0].viscosity
    tau = tau_from_viscosity(scalar.diffusivity, scalar.lattice.cs2)
    lines = [
        Line("diffusivity", f"{scalar.diffusivity:.6g}", "cells^2 per step"),
        Line("tau", f"{tau:.6g}", f"{scalar.lattice.name}, {scalar.collision.name}"),
        Line("Prandtl or Schmidt", f"{nu / scalar.diffusivity:.4g}", "viscosity / diffusivity"),
    ]
    for boundary in scalar.boundaries:
        given = ", ".join(f"{key} = {value}" for key, value in boundary.values().items())
        text = "adiabatic" if boundary.reflects else boundary.name
        lines.append(Line(f"boundary {' '.join(boundary.where)}", text, given))
    return lines + _buoyancy(case, scalar)


def _buoyancy(case: Case, scalar: Scalar) -> list[Line]:
    """The Rayleigh number and the speed of free fall; none unless faces have given numbers."""
    acting = case.buoyancy.expansions.get(scalar.label) if case.buoyancy else None
    held: dict[str, float] = {}
    for boundary in (each for each in scalar.boundaries if each.name == "value"):
        value: Any = boundary.values()["value"]
        held |= dict.fromkeys(boundary.where, value) if isinstance(value, int | float) else {}
    if case.buoyancy is None or acting is None or len(set(held.values())) < 2:
        return []
    difference = max(held.values()) - min(held.values())
    axes = {face[0] for face in held}
    axis = next(iter(axes)) if len(axes) == 1 else "xyz"[case.dimensions - 1]
    H = case.domain.size["xyz".index(axis)]
    push = sqrt(sum(g * g for g in case.buoyancy.gravity)) * abs(acting.beta) * difference
    rayleigh = push * H**3 / (case.fluids[0].viscosity * scalar.diffusivity)
    speed = sqrt(push * H)
    note = f"gravity beta d{scalar.label} H^3 / (nu D), H = {H} cells along {axis}"
    fast = "too fast for an incompressible flow; lower gravity" if speed > FAST else ""
    return [
        Line("Rayleigh", f"{rayleigh:.4g}", note),
        Line("free fall", f"{speed:.3g}", fast or "cells per step", "fair" if fast else ""),
    ]

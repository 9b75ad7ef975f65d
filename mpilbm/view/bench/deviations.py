"""The results of a variant, and their relative deviations from those of the reference."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

DYNAMIC_PRESSURE = 1.5  # rho_0 u^2/2 as a density: u^2 / (2 c_s^2) with c_s^2 = 1/3


@dataclass
class Sample:
    """Fields of the box (on rank 0, else {}), solid cells, and sums over the box, at a step."""

    fields: dict[str, np.ndarray]
    solid: np.ndarray | None
    sums: dict[str, float]


@dataclass
class Results:
    """What a variant has computed: samples by step, and forces (samples, bodies, D)."""

    samples: dict[int, Sample] = field(default_factory=dict)
    forces: list[Any] = field(default_factory=list)


def deviations(found: Results, reference: Results, step: int) -> dict[str, float | None]:
    """Deviations at a step, each relative to a scale of the reference; on rank 0.

    u              rms of the deviation / rms of the velocity
    rho            rms of the deviation / standard deviation of rho, or / (3/2) u_rms^2, the dynamic
                   pressure, if this is larger
    other fields   rms of the deviation / standard deviation
    forces         rms of the deviation / rms of the forces; of all samples, at the last step only
    mass, energy   |sum - sum of the reference| / sum of the reference
    momentum       |sum - sum of the reference| / (mass u_rms)

    Fields are compared in fluid cells. None: the scale is 0, there is nothing to compare.
    """
    mine, exact = found.samples[step], reference.samples[step]
    assert exact.solid is not None, "rank 0 has the fields"
    fluid = ~exact.solid
    speed = _rms(exact.fields["u"], fluid)
    figures: dict[str, float | None] = {}
    for name, values in exact.fields.items():
        scale = speed if name == "u" else _spread(values, fluid)
        if name == "rho":
            scale = max(scale, DYNAMIC_PRESSURE * speed**2)
        figures[name] = _ratio(_rms(mine.fields[name], fluid, values), scale)
    if reference.forces and step == max(reference.samples):
        forces = np.array(reference.forces)
        error = np.array(found.forces) - forces
        figures["forces"] = _ratio(sqrt(np.mean(error**2)), sqrt(np.mean(forces**2)))
    apart = {name: mine.sums[name] - value for name, value in exact.sums.items()}
    momentum = sqrt(sum(apart.get(f"momentum_{x}", 0.0) ** 2 for x in "xyz"))
    mass, energy = exact.sums["mass"], exact.sums["kinetic_energy"]
    return figures | {
        "mass": _ratio(abs(apart["mass"]), mass),
        "momentum": _ratio(momentum, mass * speed),
        "energy": _ratio(abs(apart["kinetic_energy"]), energy),
    }


def _ratio(value: float, scale: float) -> float | None:
    return value / scale if scale else None


def _rms(values: np.ndarray, fluid: np.ndarray, other: np.ndarray | None = None) -> float:
    """Root mean square of a field, or of its difference to another, plane by plane in double."""
    total = 0.0
    for plane in range(len(values)):
        here = values[plane][fluid[plane]].astype(float)
        if other is not None:
            here -= other[plane][fluid[plane]]
        total += float(np.sum(here**2))
    return sqrt(total / np.count_nonzero(fluid))


def _spread(values: np.ndarray, fluid: np.ndarray) -> float:
    """Standard deviation of a scalar field; rms of the deviation from the mean of a vector."""
    inside = values[fluid].astype(float)
    return float(np.sqrt(np.sum(inside.var(axis=0))))

"""Profiles of the output `statistics` along one axis."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mpilbm.core.errors import CommandError
from mpilbm.core.files.hdf5 import (
    Hdf5File,
    attribute,
    group_datasets,
    opened,
    require_intact,
    values,
)

AXES = "xyz"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Means over time and all directions but one, in lattice units.

    axis          the direction that is not averaged: 0, 1, 2
    position      cell centres, (n,)
    u             mean velocity, (n, D)
    stress        <u_a' u_b'> by pairs such as "xy", (n,) each
    scalars       mean of each scalar by its label, (n,)
    fluxes        <u_a' phi'> of each scalar, (n, D)
    variances     <phi'^2> of each scalar, (n,)
    first, step   steps of the first and of the last sample
    samples       number of samples
    """

    path: Path
    axis: int
    position: np.ndarray
    u: np.ndarray
    stress: dict[str, np.ndarray]
    first: int
    step: int
    samples: int
    scalars: dict[str, np.ndarray] = field(default_factory=dict)
    fluxes: dict[str, np.ndarray] = field(default_factory=dict)
    variances: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def window(self) -> str:
        """The samples in words."""
        return f"{self.samples:,} samples, steps {self.first:,} to {self.step:,}"


def read_profile(path: Path, axis: str, verify: bool = False) -> Profile:
    """The profile of a file `statistics_<axis>_<step>.h5`; CommandError if it has none.

    `verify`: compare the file with its digest.
    """
    try:
        if verify:
            require_intact(path)
        with opened(path) as file:
            numbers = [int(attribute(file, "/", name, np.int64))
                       for name in ("first_step", "step", "samples")]  # fmt: skip
            data = {name: _read(file, name) for name in (axis, "u", "reynolds_stress")}
            labels = [name.removeprefix("flux_") for name in group_datasets(file, "/")
                      if name.startswith("flux_")]  # fmt: skip
            scalars, fluxes, variances = (
                {label: _read(file, part + label) for label in labels}
                for part in ("", "flux_", "variance_")
            )
    except ValueError as error:
        raise CommandError(f"{path}: cannot be read as a profile: {error}") from None
    position, u, stress = data.values()
    names = AXES[: u.shape[-1]]
    pairs = [a + b for k, a in enumerate(names) for b in names[k:]]
    n = len(position)
    if u.shape != (n, len(names)) or stress.shape != (n, len(pairs)):
        raise CommandError(
            f"{path}: its datasets u and reynolds_stress are no profiles along {axis}"
        )
    return Profile(
        path=path, axis=AXES.index(axis), position=position, u=u,
        stress=dict(zip(pairs, stress.T, strict=True)),
        first=numbers[0], step=numbers[1], samples=numbers[2],
        scalars=scalars, fluxes=fluxes, variances=variances,
    )  # fmt: skip


def _read(file: Hdf5File, name: str) -> np.ndarray:
    """A dataset; ValueError if there is none."""
    found = values(file, name)
    if found is None:
        raise ValueError(f"has no dataset '{name}'")
    found.require_stored()
    return found[()].astype(float)

"""The rows of nusselt.csv."""

from math import nan, prod
from typing import Any

import numpy as np

from mpilbm.core.units import TIME
from mpilbm.outputs import Context
from mpilbm.outputs.nusselt.scales import Scales
from mpilbm.parallel.agree import on_root
from mpilbm.physics.lattices import AXES
from mpilbm.solver.scalar_transport import over_owners
from mpilbm.storage.csv_log import Rows

Parts = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # of each rank


class NusseltWriter:
    """Rank 0 writes the file; the device of each rank sums over its planes and their links."""

    def __init__(self, context: Context, scales: Scales, name: str):
        self.context, self.case, self.scales = context, context.case, scales
        assert context.solver.transport is not None, "the case needs fluxes, see Output.scalars"
        self.transport = context.solver.transport
        self.links = self.transport.fluxes[scales.number]
        fluid = context.comm.gather(int(context.solver.geometry.fluid_cells.sum()))
        self.fluid_cells = max(1, sum(fluid or ()))
        self.names, self.areas = self._owners()
        self.rows: Rows | None = None  # on rank 0
        on_root(context.comm, self._open, name)

    def _owners(self) -> tuple[list[str], np.ndarray]:
        """The columns of the faces and bodies, and the areas by which their sums are divided."""
        size, names, areas = self.case.domain.size, [], []
        for owner in self.links.owners:
            if owner.body is not None:
                names.append(f"rate_{self.case.bodies[owner.body].label}")
                areas.append(1)
            else:
                (face,) = owner.boundary.where
                names.append(f"flux_{face}")
                areas.append(prod(size) // size[AXES.index(face[0])])
        return names, np.array(areas, float)

    @property
    def _faces(self) -> list[str]:
        """The faces of the axis that are not periodic."""
        faces = (AXES[self.scales.axis] + side for side in "-+")
        return [face for face in faces if f"flux_{face}" in self.names]

    def header(self) -> list[str]:
        """Names of the columns."""
        fluxes = [*self.names, "flux_volume"]
        numbers = [f"nusselt_{part}" for part in (*self._faces, "volume", "dissipation")]
        in_si = ["time_s", *(name for name, _ in self._si_columns(fluxes))]
        return ["step", "time", *fluxes, "dissipation", *numbers, *(in_si if self._units else [])]

    @property
    def _units(self) -> Any:
        return self.case.units

    def _si_columns(self, names: list[str]) -> list[tuple[str, tuple[int, ...]]]:
        """Name and dimension of the columns in SI, of heat if the scalar has a heat capacity.

        A rate of a body in 2D is per metre.
        """
        heat = self.case.scalars[self.scales.number].heat_capacity is not None
        found: list[tuple[str, tuple[int, ...]]] = []
        for name in names:
            metres = self.case.dimensions - 1 if name.startswith("rate_") else 0
            moved = "m/s" if not metres else f"m^{metres + 1}/s"
            heats = ("W/m^2", "W/m", "W")[metres]
            found.append((f"{name} ({heats if heat else moved})", (1 + metres, -1, 0)))
        return found

    def _open(self, name: str) -> None:
        path = self.context.directory / name
        self.rows = Rows(path, self.header(), self.context.first_step)
        self.context.rows.append(self.rows)

    def write(self, step: int) -> None:
        """Enqueue the sums of this step; the row is written when they are known. Collective."""
        volume, links = self.transport.start(self.scales.number), self.links.start()

        def complete() -> None:
            parts = self.context.comm.gather((self.links.groups, links(), volume()))
            on_root(self.context.comm, self._write, step, parts)

        self.context.samples.add(complete)

    def _write(self, step: int, parts: Parts) -> None:
        fluxes = over_owners(self.links.owners, [(groups, sums) for groups, sums, _ in parts])
        fluxes = fluxes / self.areas
        planes = np.concatenate([volume for *_, volume in parts])
        means = np.cumsum(planes, axis=0)[-1] / self.fluid_cells
        a, D, scales = self.scales.axis, self.case.dimensions, self.scales
        volume = means[a] - scales.diffusivity * means[D + a]
        fluxes, dissipation = np.append(fluxes, volume), scales.diffusivity * means[2 * D]
        row = [step, *fluxes, dissipation, *self._numbers(fluxes, dissipation)]
        if self.rows is not None:
            self.rows.add(step, [*row, *self._in_si(step, fluxes)])

    def _numbers(self, fluxes: np.ndarray, dissipation: float) -> list[float]:
        """The Nusselt numbers."""
        scales, by_name = self.scales, dict(zip([*self.names, "volume"], fluxes, strict=True))
        inwards = [by_name[f"flux_{face}"] * (1 if face[1] == "-" else -1) for face in self._faces]
        of_flux = [flux / scales.unit for flux in (*inwards, by_name["volume"])]
        supplied = scales.unit * scales.difference / self.case.domain.size[scales.axis]
        return [*of_flux, dissipation / supplied if supplied else nan]

    def _in_si(self, step: int, fluxes: np.ndarray) -> list[float]:
        """The values of the columns in SI."""
        if not self._units:
            return []
        of = [dimension for _, dimension in self._si_columns([*self.names, "flux_volume"])]
        capacity = self.case.scalars[self.scales.number].heat_capacity or 1.0
        pairs = zip(fluxes.tolist(), of, strict=True)
        values = [capacity * self._units.to_si(flux, dimension) for flux, dimension in pairs]
        return [self._units.to_si(step, TIME), *values]

    def close(self) -> None:
        """Close the file."""
        if self.rows is not None:
            self.rows.close()
            self.rows = None

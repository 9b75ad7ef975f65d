"""Replaces the density or the velocity of a fluid between two steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mpilbm.case.initial_fields import InitialFields
from mpilbm.core.errors import CaseError, UsageError
from mpilbm.core.formulas.given_functions import GivenFunction
from mpilbm.model.limits import DENSITIES, LARGEST_DENSITY, LEAST_DENSITY
from mpilbm.outputs import Context
from mpilbm.parallel import together
from mpilbm.solver.initialise import HostValues
from mpilbm.solver.solver import Solver

Given = ArrayLike | Callable[..., Any]


class CellValues(InitialFields):
    """rho and u of cells, in place of the initial fields of a fluid.

    `planes`: rho (rows, nx) and u (rows, nx, D) of the planes of this rank, by number in the box;
    with `non_equilibrium` also those of the planes beside them.
    """

    planes: dict[int, tuple[Any, Any]]

    @property
    def uniform(self) -> bool:
        """False: the values belong to cells."""
        return False

    def evaluate(
        self, shape: tuple[int, int, int], begin: int, end: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rho (n, rows, nx) and u (n, rows, nx, D) of the n planes begin … end - 1."""
        rho, u = zip(*(self.planes[plane] for plane in range(begin, end)), strict=True)
        return np.stack(rho), np.stack(u)


def set_field(context: Context, name: str, value: Given, local: bool) -> None:
    """Set the field `name`, u or the density of a fluid; collective.

    The populations of all fluids are set from their densities and u, as at the start. Raises
    UsageError on all ranks alike.
    """
    comm, solver = context.comm, context.solver
    densities = _densities(solver)
    if name not in (*densities, "u"):
        allowed = ", ".join((*densities, "u"))
        raise UsageError(f"set_field: '{name}' cannot be set; allowed: {allowed}")
    new = together(comm, _new_values, context, name, value, local)
    solid = solver.solid(0, context.slab.planes)  # where values have no effect
    new = np.where(solid[..., None] if name == "u" else solid, 0 if name == "u" else 1, new)
    fields = solver.fields((*densities, "u"), 0, context.slab.planes)
    values = {key: field.astype(np.float64) for key, field in fields.items()} | {name: new}
    together(comm, _require, context, values)
    for number, density in enumerate(densities):
        initial = solver.case.fluids[number].initial
        given = _cell_values(context, initial, values[density], values["u"])
        together(comm, _fill, context, number, given)
    if solver.coupled:
        solver.coupled.begin()
    solver.resume(solver.steps)


def _densities(solver: Solver) -> list[str]:
    """The fields with the density of each fluid; UsageError if the flow has none for a fluid."""
    case = solver.case
    labels = [fluid.label for fluid in case.fluids]
    names = [f"rho_{label}" if len(labels) > 1 else "rho" for label in labels]
    missing = [name for name in names if name not in solver.field_names]
    if missing:
        raise UsageError(
            f"set_field: this flow has no field {missing[0]} to set populations from; give the "
            "fields of its fluids in [initial] of the case"
        )
    return names


def _new_values(context: Context, name: str, value: Given, local: bool) -> np.ndarray:
    """The given values of the stored cells of this slab, float64; UsageError."""
    case, slab = context.case, context.slab
    plane = case.domain.size[-2::-1]
    components = (case.dimensions,) if name == "u" else ()
    here = local or callable(value)
    found = _called(context, name, value) if callable(value) else _numbers(name, value)
    wanted = (slab.planes if here else slab.shape[0], *plane, *components)
    if found.shape != wanted:
        whose = "this slab" if here else "the box"
        last = " and the components of u" if components else ""
        raise UsageError(
            f"set_field('{name}'): found values of shape {found.shape}; allowed: {wanted}, the "
            f"cells of {whose}{last}"
        )
    found = found if here else found[slab.begin : slab.end]
    rows = (1, *plane) if len(plane) == 1 else plane
    cells = found.reshape(slab.planes, *rows, *components)
    return case.lattice.stored(cells, slab.begin)


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise UsageError(f"set_field('{name}'): {error}; give an array or a function") from None
    if found.dtype.kind not in "biuf":
        raise UsageError(
            f"set_field('{name}'): found values of type {found.dtype}; allowed: real numbers; give "
            "an array or a function"
        )
    return found.astype(np.float64)


def _called(context: Context, name: str, call: Callable[..., Any]) -> np.ndarray:
    """The values of a function of x, y (and z, and t) in all cells of this slab; UsageError."""
    size, slab = context.case.domain.size, context.slab
    axes = [np.arange(slab.begin, slab.end), *(np.arange(count) for count in size[-2::-1])]
    cells = [grid + 0.5 for grid in np.meshgrid(*axes, indexing="ij")]
    places, t = cells[::-1], context.solver.steps  # x, y, z
    try:
        function = GivenFunction(call, len(size), f"set_field('{name}')")
        if name != "u":
            return function.scalar(places, t)
        return np.stack(function.vector(places, t, len(size)), axis=-1)
    except CaseError as error:
        raise UsageError(error.problems) from error


def _require(context: Context, values: dict[str, np.ndarray]) -> None:
    """UsageError that names the first cell that is not finite, out of range or too fast."""
    limit = float(context.case.lattice.cs2) ** 0.5
    sonic = f"is above the speed of sound; allowed: below {limit:.4g}"
    dense = f"is outside the range of densities; allowed: {DENSITIES}"
    for name, field in values.items():
        if name == "u":
            what, found = "|u|", np.sqrt((field**2).sum(axis=-1))
            wrong, sentence = found > limit, sonic
        else:
            what, found = name, field
            wrong, sentence = (found < LEAST_DENSITY) | (found > LARGEST_DENSITY), dense
        infinite = ~np.isfinite(found)
        if infinite.any():
            wrong, sentence = infinite, "is not finite; give numbers"
        for plane, row, k in np.argwhere(wrong)[:1].tolist():
            whole = context.slab.begin + plane
            x = context.case.lattice.x(whole, row, k)
            cell = (x, whole) if context.case.dimensions == 2 else (x, row, whole)
            at = f"{what} = {found[plane, row, k]:g} in cell {cell} (counted from 0)"
            raise UsageError(f"set_field: {at} {sentence}")


def _cell_values(
    context: Context, initial: InitialFields, rho: np.ndarray, u: np.ndarray
) -> CellValues:
    """The values of this slab; with a stress also those of the planes beside it. Collective."""
    own = zip(range(context.slab.begin, context.slab.end), rho, u, strict=True)
    planes = {plane: (density, velocity) for plane, density, velocity in own}
    if initial.non_equilibrium:
        edges = {k: planes[k] for k in (context.slab.begin, context.slab.end - 1)}
        for other in context.comm.allgather(edges):
            planes = other | planes
    given = {key: getattr(initial, key) for key in InitialFields.model_fields}
    return CellValues.model_construct(**given, planes=planes)


def _fill(context: Context, number: int, given: CellValues) -> None:
    solver = context.solver
    fluid = solver.case.fluids[number].model_copy(update={"initial": given})
    values = HostValues(solver.context, fluid)
    for begin, end in solver.state.blocks():
        solver.fluids[number].over_block("initialise", begin, end, **values.planes(begin, end))

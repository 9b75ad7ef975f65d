"""What kernels need of scalars, without their equations: numbers, tables and the force."""

from mpilbm.core.registry import make
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.model.case import Case, Scalar
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.scalars.boundaries.conjugate import Conjugate

MATERIAL = "material"  # array of the material of each cell: 0, or 1 + index in case.conductors
COLUMNS = ("capacity", "conducts")  # of a table of materials, before the rates


def forcing(case: Case) -> Forcing | None:
    """The forcing scheme of the fluid: that of the case, or `guo` if only scalars act on it."""
    (fluid,) = case.fluids
    if fluid.force is not None or case.buoyancy is None:
        return fluid.force
    return make("forcing", {"name": "guo", "value": (0.0,) * case.dimensions})


def buoyant(case: Case) -> tuple[int, ...]:
    """Numbers of the scalars that act on the flow."""
    acting = case.buoyancy.expansions if case.buoyancy else {}
    return tuple(k for k, label in enumerate(case.labels) if label in acting)


def buoyancy_names(number: int, D: int) -> tuple[list[str], str]:
    """Arguments of kernels: gravity times beta along each axis, and the reference of a scalar."""
    return [f"buoyancy_{axis}_{number}" for axis in "xyz"[:D]], f"reference_{number}"


def buoyancy_numbers(case: Case) -> dict[str, float]:
    """The arguments of `buoyancy_names` for all scalars of a case that act on the flow.

    The force is -rho_0 gravity sum_k beta_k (phi_k - reference_k).
    """
    if case.buoyancy is None:
        return {}
    found: dict[str, float] = {}
    for label, each in case.buoyancy.expansions.items():
        along, reference = buoyancy_names(case.labels.index(label), case.dimensions)
        found |= {
            name: -g * each.beta for name, g in zip(along, case.buoyancy.gravity, strict=True)
        }
        found[reference] = each.reference
    return found


def table_name(suffix: str) -> str:
    """The array with a row of numbers for each material."""
    return f"materials{suffix}"


def material_grid(grid: Grid) -> Grid:
    """The memory of the numbers of materials; `grid`: that of the fluid."""
    return byte_grid(MATERIAL, grid)


def table(scalar: Scalar, conductors: tuple[int, ...]) -> list[list[float]]:
    """The rows of the table of a scalar: capacity, whether it conducts in a body, and rates."""
    lattice = scalar.lattice
    own = scalar.collision.rates(scalar.diffusivity, lattice).values()
    rows = [[1.0, 0.0, *own]]
    for number in conductors:
        found = scalar.bodies[number]
        if not found.conducts:
            rows.append(rows[0])
            continue
        assert isinstance(found, Conjugate)  # the condition that conducts
        solid = found.conjugate
        rates = scalar.collision.rates(solid.diffusivity * solid.capacity, lattice)
        rows.append([solid.capacity, 1.0, *rates.values()])
    return rows

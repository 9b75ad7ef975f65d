"""Makes the kernels of a case with scalars."""

from collections.abc import Callable
from dataclasses import replace

from mpilbm.codegen.kernels import Options
from mpilbm.codegen.scalars.kernels import CarryingKernels, ScalarKernels
from mpilbm.codegen.scalars.materials import Materials
from mpilbm.codegen.scalars.model import Carrying, ScalarModel
from mpilbm.codegen.scalars.names import material_grid
from mpilbm.core.registry import make
from mpilbm.layouts.grid import Grid
from mpilbm.model.case import Case
from mpilbm.physics.forcing import Forcing


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


def scalar_model(case: Case, number: int) -> ScalarModel:
    """The model of one scalar."""
    scalar = case.scalars[number]
    source = scalar.source_value(number, case.labels)
    found = ScalarModel(
        scalar.lattice, scalar.collision, None, False,
        number=number, label=scalar.label, given=source,
    )  # fmt: skip
    if not case.conductors:
        return found
    rates = tuple(scalar.collision.rates(1.0, scalar.lattice))
    grid = case.layout.grid(case.lattice, 1, 1, 1)
    assert isinstance(grid, Grid)  # scalars are carried in dense layouts, see Layout.conflicts
    return replace(found, materials=Materials(material_grid(grid), found.suffix, rates))


def carrying_kernels(
    case: Case, options: Options, of_scalar: Callable[[Case], Options]
) -> CarryingKernels:
    """The kernels of the fluid; `of_scalar(view)`: the options of those of a scalar."""
    (fluid,) = case.fluids
    # A pair of cells reads populations only. With two scalars it needs so many registers that an
    # H200 ran at 72 % of the copy bandwidth, and at 85 % with one cell per thread.
    options["paired"] &= not case.conductors and len(case.scalars) == 1
    scalars = tuple(
        ScalarKernels(scalar_model(case, k), case.layout, **of_scalar(case.of_scalar(k)))
        for k in range(len(case.scalars))
    )
    model = Carrying(
        case.lattice, fluid.collision, forcing(case), case.precision.offset,
        scalars=scalars, buoyant=buoyant(case), pushed=fluid.force is not None,
        nu=case.viscosity_value,
    )  # fmt: skip
    return CarryingKernels(model, case.layout, **options)


def structure(case: Case) -> dict[str, object]:
    """The properties of scalars that change the kernel text, as plain data."""
    scheme = forcing(case)
    return {
        "scalars": [scalar_model(case, k).structure() for k in range(len(case.scalars))],
        "buoyant": buoyant(case),
        "viscosity": case.viscosity_value and case.viscosity_value.structure(),
        "scheme": scheme and scheme.structure(),
    }

"""A state of populations as moments, and a state of moments as populations.

The arithmetic is that of the kernels, from the same equations, in float64.
"""

from collections.abc import Callable

import numpy as np
from sympy import lambdify, symbols

from mpilbm.codegen.model import Model
from mpilbm.layouts import Layout
from mpilbm.model.case import Case


def converter(case: Case, given: Layout, wanted: Layout) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of a state in the layout `given` that returns it in `wanted`.

    A state has the form (planes, values of a cell, rows, nx), see Populations.read_state; the
    result has the format of the argument. One of the layouts stores populations, the other does
    not; `case` has one fluid and may use both.
    """
    lattice, (fluid,) = case.lattice, case.fluids
    model = Model(lattice, fluid.collision, None, case.precision.offset)
    count = lattice.Q if given.populations else len(given.slots(lattice))
    values = symbols(f"value:{count}", real=True)
    if given.populations:
        found = [each for _, each in wanted.stored(lattice, 0, values, model)]
    else:
        found = given.outgoing(lattice, 0, lambda _, place: values[place.slot], model)
    compute = lambdify([values], found, "numpy", cse=True)

    def convert(state: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # values of solid cells mean nothing
            cells = compute(np.moveaxis(state.astype(np.float64), 1, 0))
        return np.stack(cells, 1).astype(state.dtype)

    return convert

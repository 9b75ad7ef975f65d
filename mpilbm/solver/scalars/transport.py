"""The transport of scalars: fluxes through walls, and sums over the fluid."""

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from mpilbm.solver.fields.diagnostics import Diagnostics
from mpilbm.solver.fields.plane_sums import PlaneSums
from mpilbm.solver.populations import Populations
from mpilbm.solver.scalars.link_fluxes import LinkFluxes
from mpilbm.solver.state import StateLaunch


class Transport:
    """The transport of the scalars with these numbers, see Needs.transported.

    `fluxes`: those through walls, by the number of the scalar.
    """

    def __init__(self, diagnostics: Diagnostics, scalars: tuple[Populations, ...]):
        self.diagnostics = diagnostics
        self.numbers = diagnostics.context.case.needs.transported
        self.fluxes = {k: LinkFluxes(scalars[k]) for k in self.numbers}
        self.columns = 2 * diagnostics.lattice.D + 1  # of a scalar

    @cached_property
    def _sums(self) -> PlaneSums:
        return PlaneSums(self.diagnostics.state, self.columns * len(self.numbers))

    @cached_property
    def _launch(self) -> StateLaunch:
        blocks = self.diagnostics.blocks
        given = {"u": blocks.u, **blocks.grid.arguments()}
        return StateLaunch(self.diagnostics.state, "transport", **given, **self._sums.arguments)

    def start(self, number: int) -> Callable[[], np.ndarray]:
        """Enqueue sums over the fluid cells of each plane, for the scalar phi with this number.

        The result returns them: u_a phi, d_a phi and |grad phi|^2, (planes, 2 D + 1) in double, by
        central differences (see codegen.diagnostics). Collective; to call the result is not.
        """
        first = self.columns * self.numbers.index(number)
        blocks = self.diagnostics.blocks
        blocks.prepare()
        for begin, end, arguments in blocks.blocks(0, self.diagnostics.planes):
            self._launch(begin, end, u_first=arguments["u_first"])
        copy = self._sums.start()

        def found() -> np.ndarray:
            return self._sums.shaped(copy)[:, first : first + self.columns]

        return partial(found)

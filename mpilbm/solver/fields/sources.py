"""The values that files contain, as sources of a Staging: fields, their means, and populations."""

from collections.abc import Iterable
from math import prod

import numpy as np

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.solver.fields.diagnostics import Diagnostics, components, field_names
from mpilbm.solver.fields.flow_statistics import Statistics
from mpilbm.solver.fields.mean_fields import KeptSums, MeanFields
from mpilbm.solver.fields.staging import BLOCK_BYTES, Copies, Sizes, Staging
from mpilbm.solver.populations import Populations


class FieldSource:
    """Macroscopic fields by name, see Diagnostics."""

    def __init__(self, diagnostics: Diagnostics, names: Iterable[str]):
        self.diagnostics, self.names = diagnostics, diagnostics.made_for(names)

    def sizes(self, planes: int) -> Sizes:
        """See Source."""
        values, kind = self.diagnostics.values, self.diagnostics.dtype
        return {name: (planes * values(name), kind) for name in self.names}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """See Source."""
        self.diagnostics.enqueue(arrays, begin, end)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """See Diagnostics.shaped."""
        return self.diagnostics.shaped(flat, begin, end)


class StateSource:
    """The outgoing populations of a fluid, `f`, see Populations.read_state."""

    def __init__(self, populations: Populations):
        self.populations = populations
        self._zeros: Array | None = None  # for layouts whose kernels skip solid cells

    def sizes(self, planes: int) -> Sizes:
        """See Source."""
        return {"f": (prod(self.populations.state_shape(planes)), self.populations.program.widest)}

    def enqueue(self, arrays: dict[str, Array], begin: int, end: int) -> None:
        """See Source. Solid cells that a layout does not store are 0."""
        state, populations = arrays["f"], self.populations
        if not populations.layout.dense:
            if self._zeros is None or self._zeros.size < state.size:
                self._zeros = populations.device.allocate(state.size, state.dtype)
            bulk = populations.context.bulk
            populations.device.copy(state, self._zeros[: state.size], bulk)
        populations.export(state, begin, end)

    def shaped(self, flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        """The populations (planes, Q, rows, nx)."""
        return {"f": flat["f"].reshape(self.populations.state_shape(end - begin))}


def block_bytes(case: Case, plane_bytes: int) -> int:
    """Bytes of a block of SlabCopies, for a plane of populations, of fields, or `plane_bytes`."""
    cells, compute, D = case.shape[1] * case.shape[2], case.precision.compute, case.lattice.D
    state: Sizes = {"f": (cells * len(case.formats.names), case.formats.widest)}
    fields: Sizes = {
        name: (cells * prod(components(name, D)), compute) for name in field_names(case)
    }
    return max(BLOCK_BYTES, plane_bytes, Staging.bytes_of(state), Staging.bytes_of(fields))


def least_bytes(case: Case, plane_bytes: int) -> int:
    """Bytes of device memory that SlabCopies needs at least: two blocks, and zeros for a third."""
    return (2 if case.layout.dense else 3) * block_bytes(case, plane_bytes)


class SlabCopies:
    """Copies of a slab's fields and populations to the host, all in the same memory.

    `plane_bytes`: those of the largest plane of means or sums, see Output.staged_bytes.
    """

    def __init__(
        self,
        diagnostics: Diagnostics,
        fluids: Iterable[Populations],
        ahead: int,
        host_bytes: int,
        plane_bytes: int = 0,
    ):
        self._diagnostics = diagnostics
        self._states = {fluid.field.label: StateSource(fluid) for fluid in fluids}
        block = block_bytes(diagnostics.context.case, plane_bytes)
        sizes = block, diagnostics.spare_bytes // 4, host_bytes
        self.staging = Staging(diagnostics.device, *sizes, ahead)

    def fields(self, names: Iterable[str]) -> Copies:
        """Copies of fields, see Diagnostics; `Diagnostics.prepare` comes first."""
        return Copies(self.staging, FieldSource(self._diagnostics, names))

    def state(self, label: str) -> Copies:
        """Copies `f` of the outgoing populations of a fluid, see Populations.read_state."""
        return Copies(self.staging, self._states[label])

    def means(self, statistics: Statistics) -> Copies:
        """Copies of means and Reynolds stresses of cells, see MeanFields."""
        return Copies(self.staging, MeanFields(statistics))

    def sums(self, statistics: Statistics) -> Copies:
        """Copies `sums` of the state of statistics, see Statistics.read."""
        return Copies(self.staging, KeptSums(statistics))

"""The values that files contain, as sources of a Staging: fields, their means, and populations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import DTypeLike

from mpilbm.backends.interfaces import Array
from mpilbm.case.case import Case
from mpilbm.physics.sampled import Sampled
from mpilbm.solver.fields.diagnostics import Diagnostics, components, field_names
from mpilbm.solver.fields.flow_statistics import Statistics, numbers
from mpilbm.solver.fields.staging import BLOCK_BYTES, Copies, Sizes, Staging
from mpilbm.solver.populations import Populations


@dataclass(frozen=True)
class PlaneSource:
    """A Source made of its three functions."""

    sizes: Callable[[int], Sizes]
    enqueue: Callable[[dict[str, Array], int, int], None]
    shaped: Callable[[dict[str, np.ndarray], int, int], dict[str, np.ndarray]]


def fields_of(diagnostics: Diagnostics, names: Iterable[str]) -> PlaneSource:
    """Macroscopic fields by name, see Diagnostics."""
    made = diagnostics.made_for(names)

    def sizes(planes: int) -> Sizes:
        return {name: (planes * diagnostics.values(name), diagnostics.dtype) for name in made}

    return PlaneSource(sizes, diagnostics.enqueue, diagnostics.shaped)


def state_of(populations: Populations) -> PlaneSource:
    """The outgoing populations of a fluid, `f`, see Populations.read_state; 0 where none are
    stored.
    """
    device, shape = populations.device, populations.state_shape
    zeros: Array | None = None  # for layouts whose kernels skip solid cells

    def enqueue(arrays: dict[str, Array], begin: int, end: int) -> None:
        nonlocal zeros
        state = arrays["f"]
        if not populations.layout.dense:
            if zeros is None or zeros.size < state.size:
                zeros = device.allocate(state.size, state.dtype)
            device.copy(state, zeros[: state.size], populations.context.bulk)
        populations.enqueue("export", begin, end, state=state)

    return PlaneSource(
        lambda planes: {"f": (prod(shape(planes)), populations.program.widest)},
        enqueue,
        lambda flat, begin, end: {"f": flat["f"].reshape(shape(end - begin))},
    )


def mean_sizes(sampled: Sampled, places: int) -> Sizes:
    """The arrays of the fields of so many places."""
    return {name: (places * prod(shape), "f8") for name, shape in sampled.components.items()}


def means_of(statistics: Statistics) -> PlaneSource:
    """rho, u and Reynolds stresses of cells; not a number in solids.

    With n samples, their sums s, and the shift,

        mean = shift + s / n        <u_a' u_b'> = (s_ab - n (s_a / n) (s_b / n)) / n
    """
    places, context = statistics.places, statistics.context

    def enqueue(arrays: dict[str, Array], begin: int, end: int) -> None:
        given = {f"{name}_out": array for name, array in arrays.items()}
        given |= {"sums": statistics.sums, "shift": statistics.shift, "missing": float("nan")}
        given |= {"step": places.step, "samples": statistics.samples, "start": begin * places.count}
        launch = context.bind("mean_fields", **given)
        launch(context.bulk, begin * places.count, end * places.count)

    def shaped(flat: dict[str, np.ndarray], begin: int, end: int) -> dict[str, np.ndarray]:
        size = end - begin, places.rows, places.nx
        shapes = statistics.sampled.components
        return {name: flat[name].reshape(*size, *part) for name, part in shapes.items()}

    return PlaneSource(
        lambda planes: mean_sizes(statistics.sampled, planes * places.count), enqueue, shaped
    )


def sum_sizes(sampled: Sampled, places: int, shift: DTypeLike) -> Sizes:
    """The arrays of the sums of so many places; `shift`: the type of the shifts."""
    columns, shifts = numbers(sampled.values)
    return {"sums": (places * columns, "f8"), "shift": (places * shifts, shift)}


def sums_of(of: Statistics) -> PlaneSource:
    """The state `sums` of statistics for a checkpoint, see Statistics.state_of."""

    def enqueue(arrays: dict[str, Array], begin: int, end: int) -> None:
        for name, source in (("sums", of.sums), ("shift", of.shift)):
            of.device.copy(arrays[name], of.planes_of(source, begin, end), of.context.bulk)

    return PlaneSource(
        lambda planes: sum_sizes(of.sampled, planes * of.places.count, of.shift.dtype),
        enqueue,
        lambda flat, begin, end: {"sums": of.state_of(flat["sums"], flat["shift"], end - begin)},
    )


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
        self._states = {fluid.field.label: state_of(fluid) for fluid in fluids}
        block = block_bytes(diagnostics.context.case, plane_bytes)
        sizes = block, diagnostics.spare_bytes // 4, host_bytes
        self.staging = Staging(diagnostics.device, *sizes, ahead)

    def fields(self, names: Iterable[str]) -> Copies:
        """Copies of fields, see Diagnostics; `Diagnostics.prepare` comes first."""
        return Copies(self.staging, fields_of(self._diagnostics, names))

    def state(self, label: str) -> Copies:
        """Copies `f` of the outgoing populations of a fluid, see Populations.read_state."""
        return Copies(self.staging, self._states[label])

    def means(self, statistics: Statistics) -> Copies:
        """Copies of means and Reynolds stresses of cells."""
        return Copies(self.staging, means_of(statistics))

    def sums(self, statistics: Statistics) -> Copies:
        """Copies `sums` of the state of statistics, see Statistics.read."""
        return Copies(self.staging, sums_of(statistics))

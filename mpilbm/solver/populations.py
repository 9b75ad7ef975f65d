"""The populations of a fluid or scalar on a slab: arrays, kernels, state for checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as default
from math import prod
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.codegen.program import OF, Access
from mpilbm.model.case import Field
from mpilbm.solver.context import SlabContext


@dataclass(frozen=True)
class Group:
    """A part of the state in a checkpoint: (planes, components, rows, nx) values of `dtype`.

    `attributes`: what the checkpoint keeps besides, by name.
    """

    label: str
    components: int
    dtype: str
    attributes: dict[str, float] = default(default_factory=dict)


class Populations:
    """The populations of one field of a case: of a fluid, or of a scalar that a fluid carries.

    Step t has parity t % parities and, with two arrays, reads array t % 2 and writes the other.
    The methods take plain kernel names; in the program the names of kernels of coupled fluids end
    in OF with the fluid's `number`, those of scalars in OF with their `place`. `carried`: the
    scalars of a fluid, whose arrays its kernels read.
    """

    def __init__(
        self,
        context: SlabContext,
        field: Field,
        number: int,
        place: int | None = None,
        carried: "tuple[Populations, ...]" = (),
    ):
        self.context, self.field = context, field
        self.carried = carried
        self.case, self.slab, self.device = context.case, context.slab, context.device
        self.lattice, self.layout, self.grid = self.case.lattice, self.case.layout, context.grid
        place = number if self.case.coupling else place
        self.number, self.suffix = number, "" if place is None else OF.format(place)
        kernels = {
            name.removesuffix(self.suffix): kernel
            for name, kernel in context.program.kernels.items()
            if kernel.fluid == place
        }
        self.program = replace(context.program, kernels=kernels)
        count, storage = self.grid.count, self.program.storage
        self.f = [self.device.allocate(count, storage) for _ in range(self.layout.buffers)]

    @classmethod
    def of_fluids(cls, context: SlabContext) -> "list[Populations]":
        """Those of all fluids of a slab, with the scalars that they carry."""
        case = context.case
        scalars, fluids = enumerate(case.scalars), enumerate(case.fluids)
        carried = tuple(cls(context.of_scalar(k), each, 0, 1 + k) for k, each in scalars)
        return [cls(context, each, k, carried=carried) for k, each in fluids]

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return self.context.clock.steps

    def numbers(self) -> dict[str, float]:
        """The rates of the collisions of this fluid and of its scalars, as kernel arguments."""
        found = self.field.arguments(self.lattice)
        for each in self.carried:
            found |= {f"{name}{each.suffix}": rate for name, rate in each.numbers().items()}
        return found

    def bind(self, name: str, **arguments: Any) -> Launch:
        """A kernel of this fluid with its arguments; those that it does not take are ignored."""
        return self.context.bind(name + self.suffix, **(self.numbers() | arguments))

    def bind_step(self, name: str, **arguments: Any) -> Launch:
        """As `bind`, for a kernel of the time step: see SlabContext.bind_step."""
        return self.context.bind_step(name + self.suffix, **(self.numbers() | arguments))

    def current(self) -> dict[str, Array]:
        """The array with the outgoing populations of the last step, and those of the scalars."""
        own = {"f": self.f[self.steps % self.layout.buffers]}
        return own | self._of_scalars(lambda each: each.current())

    def arrays(self, k: int) -> dict[str, Array]:
        """The arrays that steps t with t % period = k read (`f`, `f_in`) and write (`f_out`)."""
        source, target = (self.f[t % self.layout.buffers] for t in (k, k + 1))
        own = {"f": source, "f_in": source, "f_out": target}
        return own | self._of_scalars(lambda each: each.arrays(k))

    def _of_scalars(self, arrays: "Callable[[Populations], dict[str, Array]]") -> dict[str, Array]:
        """The arrays of each scalar, with its suffix after their names."""
        return {
            f"{name}{each.suffix}": array
            for each in self.carried
            for name, array in arrays(each).items()
        }

    def list_reads(self, parity: int) -> list[Access]:
        """The accesses by which boundary kernels of this parity read."""
        kernels = self.program.kernels.values()
        lists = [k for k in kernels if k.over_links and k.parity == parity]
        return [access for kernel in lists for access in kernel.reads]

    def enqueue(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Enqueue a kernel on planes begin..end of the current populations in the bulk stream."""
        if name not in self.program.kernels:
            name = f"{name}_{self.context.parity}"
        origin = self.grid.ghost + begin
        launch = self.bind(name, origin=origin, **(self.current() | arrays))
        self.context.over_planes(launch, begin, end)

    def over_block(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Run a kernel on planes begin..end of the current populations, and wait."""
        self.enqueue(name, begin, end, **arrays)
        self.device.synchronize()

    @property
    def group(self) -> Group:
        """The part of a checkpoint that holds this fluid."""
        return Group(self.field.label, len(self.grid.slots), self.program.widest)

    def state_shape(self, planes: int) -> tuple[int, int, int, int]:
        """The shape of the state of so many planes: (planes, values in a cell, rows, nx)."""
        return (planes, len(self.grid.slots), self.grid.rows, self.grid.nx)

    def export(self, state: Array, begin: int, end: int) -> None:
        """Enqueue copying the state of planes begin..end to an array, see `read_state`."""
        self.enqueue("export", begin, end, state=state)

    def read_state(self, begin: int, end: int) -> np.ndarray:
        """The outgoing populations of planes begin..end, (end - begin, Q, rows, nx).

        The populations are in the order of the lattice. Where the layout stores moments, the result
        contains these instead.
        """
        shape = self.state_shape(end - begin)
        state = self.device.allocate(prod(shape), self.program.widest)
        self.export(state, begin, end)
        return self.device.download(state).reshape(shape)

    def write_state(self, begin: int, state: np.ndarray) -> None:
        """The inverse of `read_state`."""
        self.over_block("import", begin, begin + len(state), state=self.device.upload(state))

"""The populations of a fluid or scalar on a slab: arrays, kernels, state for checkpoints."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from dataclasses import field as default
from math import prod
from typing import Any

import numpy as np

from mpilbm.backends.interfaces import Array, Launch
from mpilbm.codegen.program import OF, Access, Program
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


class CurrentState:
    """Kernels of `program` over planes of the current populations; `context`: that of the slab."""

    context: SlabContext
    program: Program

    def current(self) -> dict[str, Any]:
        """The arrays with the outgoing populations of the last step, by the names of arguments."""
        raise NotImplementedError

    def bind(self, name: str, **arguments: Any) -> Launch:
        """A kernel with its arguments; those that it does not take are ignored."""
        return self.context.bind(name, **arguments)

    def launch(self, name: str, begin: int, **arrays: Any) -> Launch:
        """A kernel over planes of the state, for arrays that begin at plane `begin`.

        It is valid for all steps with the same step % period, unless forces depend on time.
        """
        if name not in self.program.kernels:
            name = f"{name}_{self.context.parity}"
        origin = self.context.grid.ghost + begin
        return self.bind(name, origin=origin, **(self.current() | arrays))

    def enqueue(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Enqueue a kernel for planes begin..end of the state in the bulk stream."""
        self.context.over_planes(self.launch(name, begin, **arrays), begin, end)

    def over_block(self, name: str, begin: int, end: int, **arrays: Any) -> None:
        """Run a kernel on planes begin..end of the state, and wait."""
        self.enqueue(name, begin, end, **arrays)
        self.context.device.synchronize()


class Populations(CurrentState):
    """The populations of one field of a case: of a fluid, or of a scalar that a fluid carries.

    Step t has parity t % parities and, with two arrays, reads array t % 2 and writes the other. The
    methods take plain kernel names, which in the program end in OF with `place` for coupled fluids
    and scalars. `number` counts the fluids. `carried`: the scalars of a fluid, whose arrays it
    reads.
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
        self.bounded = context.bounded  # its lattice and boundaries; of a fluid, the case itself
        self.lattice, self.layout = self.bounded.lattice, self.bounded.layout
        self.grid = context.grid
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
        """The populations of all fluids of a slab, with the scalars that they carry."""
        case = context.case
        scalars, fluids = enumerate(case.scalars), enumerate(case.fluids)
        carried = tuple(cls(context.of_scalar(k), each, 0, 1 + k) for k, each in scalars)
        return [cls(context, each, k, k if case.coupling else None, carried) for k, each in fluids]

    @property
    def steps(self) -> int:
        """How many steps are done."""
        return self.context.clock.steps

    def numbers(self) -> dict[str, float]:
        """The rates of the collisions of this fluid and of its scalars, as kernel arguments."""
        own = self.field.arguments(self.lattice)
        return own | suffixed(self.carried, Populations.numbers)

    def bind(self, name: str, **arguments: Any) -> Launch:
        """A kernel of this fluid with its arguments; those that it does not take are ignored."""
        return self.context.bind(name + self.suffix, **(self.numbers() | arguments))

    def bind_step(self, name: str, **arguments: Any) -> Launch:
        """Bind a kernel of the time step, which receives the forces of each step."""
        return self.context.bind_step(name + self.suffix, **(self.numbers() | arguments))

    def current(self) -> dict[str, Array]:
        """The array with the outgoing populations of the last step, and those of the scalars."""
        own = {"f": self.f[self.steps % self.layout.buffers]}
        return own | suffixed(self.carried, Populations.current)

    def arrays(self, k: int) -> dict[str, Array]:
        """The arrays that steps t with t % period = k read (`f`, `f_in`) and write (`f_out`)."""
        source, target = (self.f[t % self.layout.buffers] for t in (k, k + 1))
        own = {"f": source, "f_in": source, "f_out": target}
        return own | suffixed(self.carried, lambda each: each.arrays(k))

    def list_reads(self, parity: int) -> list[Access]:
        """The accesses by which boundary kernels of this parity read."""
        kernels = self.program.kernels.values()
        lists = [k for k in kernels if k.over_links and k.parity == parity]
        return [access for kernel in lists for access in kernel.reads]

    @property
    def group(self) -> Group:
        """The part of a checkpoint that holds this fluid."""
        return Group(self.field.label, len(self.grid.slots), self.program.widest)

    def state_shape(self, planes: int) -> tuple[int, int, int, int]:
        """The shape of the state of so many planes: (planes, values in a cell, rows, nx)."""
        return (planes, len(self.grid.slots), self.grid.rows, self.grid.nx)

    def read_state(self, begin: int, end: int) -> np.ndarray:
        """The outgoing populations of planes begin..end, (end - begin, Q, rows, nx), in canonical
        order.

        Where the layout stores moments, these instead.
        """
        shape = self.state_shape(end - begin)
        state = self.device.allocate(prod(shape), self.program.widest)
        self.enqueue("export", begin, end, state=state)
        return self.device.download(state).reshape(shape)

    def write_state(self, begin: int, state: np.ndarray) -> None:
        """The inverse of `read_state`."""
        self.over_block("import", begin, begin + len(state), state=self.device.upload(state))


def suffixed(
    fluids: Iterable[Populations], of: Callable[[Populations], dict[str, Any]]
) -> dict[str, Any]:
    """The arguments that `of` returns for each fluid, with its suffix after their names."""
    return {f"{name}{each.suffix}": value for each in fluids for name, value in of(each).items()}

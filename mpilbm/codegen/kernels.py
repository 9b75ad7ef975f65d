"""The kernels that change a fluid or scalar: collide-stream, initial state, import of a state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mpilbm.codegen.cell_values import given
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.model import Model
from mpilbm.codegen.printer import AsStored, AsStoredOwn, symbol
from mpilbm.codegen.program import FORCE
from mpilbm.codegen.scalar_model import ScalarModel
from mpilbm.codegen.step_text import NodeText, PairText
from mpilbm.codegen.values import KernelValues
from mpilbm.core.formulas.trees import total
from mpilbm.layouts import HERE, AnyGrid, Layout, Place, Read
from mpilbm.layouts.grid import Grid
from mpilbm.model.expressions import Expression, Populations
from mpilbm.physics.lattices import Lattice

FieldModel = Model | ScalarModel
CELL = "MAYBE_UNUSED const int64 cell = ((plane - origin) * rows + row) * nx + x;"
NODE = """\
const int within = node_cell[node_start[plane] + node], row = within / nx, x = within - row * nx;
  """


def flags_type(lattice: Lattice) -> str:
    """C type of the flags of a cell: one bit for itself and one for each neighbour."""
    return "uint8*" if len(lattice.stencil) < 8 else "uint16*"


@dataclass(frozen=True)
class Options:
    """Properties of a case that change the kernels of a fluid or scalar.

    paired    GPUs update two cells per thread
    unit      populations are stored as multiples of 1 / unit, and steps compute with them unscaled
    rounded   storage rounds populations so coarsely that the rest population must conserve the mass
    stressed  the initial state has given stresses
    held      there is a kernel for steps at a prescribed velocity
    walled    rows end in walls, see Grid.returning
    storage   `precision.storage`
    periodic  the slab axis is periodic, so that planes may wrap around, see Grid.wraps
    """

    paired: bool = False
    unit: int = 1
    rounded: bool = False
    stressed: bool = False
    held: bool = False
    walled: bool = False
    storage: str = "float32"
    periodic: bool = True


class FieldKernels:
    """Generates the kernels that a fluid and a scalar have, one for each parity of their places.

    `field`: the name of the populations' memory in addresses.
    """

    def __init__(
        self, model: FieldModel, layout: Layout, options: Options, field: str = "f"
    ) -> None:
        self.stressed = options.stressed
        self.model: FieldModel = model
        self.layout, self.lattice = layout, model.lattice
        self.rounded = options.rounded and layout.populations
        self.unit = options.unit if layout.populations and model.any_unit else 1
        # two cells per thread are loaded and stored unscaled, in the unit of the storage
        self.paired = options.paired and layout.populations and self.unit == options.unit
        layout.check_in_place(self.lattice)
        grid: AnyGrid = layout.grid(self.lattice, 1, 1, 1, storage=options.storage)
        self.grid: AnyGrid = replace(grid, name=field)
        if not options.periodic:
            self.grid = replace(self.grid, wraps=None)
        if options.walled:
            assert isinstance(self.grid, Grid)  # only dense fields have rows
            self.grid = replace(self.grid, returning=layout.returning(self.lattice))

    def pointer(self, way: str) -> str:
        """The array that a step reads ("in") or writes ("out"); the same one in place."""
        return f"f_{way}" if self.layout.buffers > 1 else "f"

    def incoming(
        self, kernel: KernelValues, parity: int, pointer: str, prefix: str = "f"
    ) -> list[Expression]:
        """The incoming populations of the cell; names of values begin with `prefix`."""
        read = self.reader(kernel, pointer, prefix)
        f = self.layout.incoming(self.lattice, parity, read, self.model)
        return [
            f_i if f_i.is_Symbol else kernel.let(f"{prefix}_{i}", f_i) for i, f_i in enumerate(f)
        ]

    def outgoing(self, kernel: KernelValues, parity: int) -> list[Expression]:
        """The outgoing populations of the step before one of this parity."""
        read = self.reader(kernel, "f", "f")
        return self.layout.outgoing(self.lattice, parity, read, self.model)

    def reader(self, kernel: KernelValues, pointer: str, prefix: str) -> Read:
        """The function with which layouts read populations."""

        def read(name: int | str, place: Place) -> Expression:
            return kernel.read(f"{prefix}_{name}", pointer, self.grid, place)

        return read

    @property
    def fields(self) -> tuple["FieldKernels", ...]:
        """The fields whose populations determine the density and velocity of a cell."""
        return (self,)

    def rates(self, kernel: KernelValues) -> dict[str, Expression]:
        """The relaxation rates by name."""
        raise NotImplementedError

    def store(self, kernel: KernelText, parity: int, f: Populations, pointer: str) -> None:
        """Store what the layout stores of the outgoing populations."""
        for place, values in self._kept(parity, f):
            kernel.write(pointer, self.grid, place, *values)

    def _kept(self, parity: int, f: Populations) -> Iterator[tuple[Place, list[Expression]]]:
        """Each place and its value, with the value whose tail it carries, if any."""
        kept = self.layout.stored(self.lattice, parity, f, self.model)
        values = {place.slot: value for place, value in kept}
        for place, value in kept:
            tail = self.grid.tail_in(place.slot)
            yield place, [value, values[tail.head]] if tail else [value]

    def stored_places(self, parity: int) -> list[Place]:
        """Places of the values that the step before one of this parity stored."""
        return self.layout.writes(self.lattice, (parity - 1) % self.layout.parities)

    def store_step(
        self, kernel: KernelText, parity: int, f_star: Populations, pointer: str = ""
    ) -> KernelText:
        """Store the outgoing populations of a step, by default in the array `pointer("out")`."""
        pointer = pointer or self.pointer("out")
        if not self.writes_other_array():
            self.store(kernel, parity, f_star, pointer)
            return kernel
        for place, values in self._kept(parity, f_star):
            kernel.send(pointer, self.grid, place, *values)
        return kernel

    def mass_kept(
        self, kernel: KernelValues, f_star: Populations, density: Expression = None, of: str = ""
    ) -> list[Expression]:
        """f* with f*_0 = density - sum_{i>0} f*_i, in terms of the values as they are stored.

        Rounding to nearest is biased where the distribution of a population is asymmetric: a vortex
        lost 3e-5 of its density in 10^4 steps. `of`: the end of the names of the values.
        """
        f = [kernel.let(f"leaves{of}_{i}", f_i) for i, f_i in enumerate(f_star) if i]
        as_stored = AsStored if kernel.unit == 1 else AsStoredOwn
        density = symbol("density") if density is None else density
        return [density - total(as_stored(f_i) for f_i in f), *f]

    def writes_other_array(self) -> bool:
        """Whether a step writes whole cells to an array that it does not read."""
        places = self.layout.writes(self.lattice, 0)
        return self.layout.buffers > 1 and all(place.offset == HERE for place in places)

    def initialise(self, parity: int) -> KernelText:
        """The outgoing populations of step -1, from rho and u."""
        text = "f_out in equilibrium at rho, u: sum_i c_i f_out_i = rho u + F/2"
        kernel = self.block_kernel("initialise", text, parity)
        kernel.optional = parity > 0  # step 0 has parity 0
        kernel.argument("rho_initial", "double*")
        kernel.argument("u_initial", "double*")
        rest = 1 if self.model.offset else 0
        density = kernel.load("density", f"(real)(rho_initial[cell] - {rest})")
        u = [
            kernel.load(f"u_{axis}", f"(real)u_initial[cell * {self.lattice.D} + {k}]")
            for k, axis in enumerate(self.model.axes)
        ]
        stressed = None
        if self.stressed:
            rates, count = self.rates(kernel), self.lattice.D * (self.lattice.D + 1) // 2
            kernel.argument("stress_initial", "double*")
            stress = [
                kernel.load(f"stress_{k}", f"(real)stress_initial[cell * {count} + {k}]")
                for k in range(count)
            ]
            stressed = stress, rates
        before = (parity - 1) % self.layout.parities
        self.store(kernel, before, self.model.initial(kernel, density, u, stressed), "f")
        return kernel

    def export_state(self, parity: int) -> KernelText:
        """All stored values of each cell in canonical order, exactly, in the widest format."""
        kernel = self._state_kernel("export", "state[plane, i, row, x] = f_out_i", parity)
        for canonical, address, suffix in self._addresses(kernel, parity):
            kernel.do(f"COPY(state, {canonical}, BITS{suffix}(f, {address}));", writes="state")
        return kernel

    def import_state(self, parity: int) -> KernelText:
        """Set all stored values of each cell, which are given in canonical order."""
        kernel = self._state_kernel("import", "f_out_i = state[plane, i, row, x]", parity)
        kernel.optional = True
        for canonical, address, suffix in self._addresses(kernel, parity):
            kernel.do(f"PUT_BITS{suffix}(f, {address}, state[{canonical}]);", writes="f")
        return kernel

    def _state_kernel(self, role: str, equations: str, parity: int) -> KernelText:
        kernel = self.block_kernel(role, equations, parity)
        kernel.phase = "copy"
        kernel.argument("state", "wide*")
        kernel.argument("f", "store*")
        return kernel

    def _addresses(self, kernel: KernelText, parity: int) -> Iterator[tuple[str, str, str]]:
        """C text of the index of each stored value in the canonical state and in the field, and the
        suffix of the macros for its format.
        """
        places = self.stored_places(parity)
        for i, place in enumerate(places):
            canonical = f"(((plane - origin) * {len(places)} + {i}) * rows + row) * nx + x"
            suffix = kernel.macro("", self.grid, place.slot)
            yield canonical, kernel.address(self.grid, place), suffix

    def block_kernel(
        self, role: str, equations: str, parity: int | None = None, grid: AnyGrid | None = None
    ) -> KernelText:
        """A kernel that also uses plain arrays, which begin at plane `origin`."""
        grid = grid or self.grid
        kernel = KernelText(role, grid.over, equations, parity=parity)
        self.find_cell(kernel, grid)
        return kernel

    def find_cell(self, kernel: KernelText, grid: AnyGrid) -> None:
        """Declare `cell`, the index of the kernel's cell in plain arrays, and its row and x."""
        kernel.sizes(grid)
        kernel.argument("origin", "int64")
        if grid.over == "nodes":
            kernel.declare(nx="int", rows="int", node_cell="int32*")
        kernel.do(NODE + CELL if grid.over == "nodes" else CELL)


class FluidKernels(FieldKernels):
    """Generates the kernels of a fluid in a layout, one for each parity of its places."""

    model: Model

    def __init__(self, model: Model, layout: Layout, options: Options) -> None:
        super().__init__(model, layout, options)
        self.held = options.held
        if model.body:
            self.paired = False
            self.model = replace(self.model, body=model.body.beside(self.grid))
        if model.forcing is not None and model.forcing.by_cell:
            self.paired = False  # a pair of cells reads one array only
            self.model = replace(self.model, force_grid=self.grid.beside(FORCE, self.lattice.D))

    def all(self) -> list[KernelText]:
        """All kernels that change or export the state."""
        makers = [self.collide_stream, self.initialise, self.export_state, self.import_state]
        makers += [self.hold] * self.held
        return [make(parity) for parity in range(self.layout.parities) for make in makers]

    def collide(self, kernel: KernelValues, f: Populations) -> list[Expression]:
        """The Q outgoing populations from the incoming ones; declares the rates."""
        model = replace(self.model, unit=kernel.unit)
        if not self.layout.populations:
            model = replace(model, collision=model.collision.up_to_second())
        return model.collide(kernel, f, self.rates(kernel))

    def rates(self, kernel: KernelValues) -> dict[str, Expression]:
        """{name: argument of the kernel}, or the rates for the viscosity of the cell."""
        names, nu = self.model.collision.arguments(1.0, self.lattice), self.model.nu
        rates = {name: kernel.argument(name, "real") for name in names}
        if nu is None:
            return rates
        here = given(kernel, nu, self.lattice, known=self.known(kernel), cut=self.model.cut)
        return self.model.rates_at(rates, here, kernel.let)

    def known(self, kernel: KernelValues) -> Mapping[str, Expression]:
        """Values of the cell on which its viscosity may depend, by name."""
        return {}

    def collide_stream(self, parity: int) -> KernelText:
        """One step of the cells of some planes."""
        text = f"{self.lattice.name}, layout {self.layout.name}: {self.model.collision.__doc__}"
        kernel = self._update("collide_stream", text, parity)
        f_star = self.collide(kernel, self.incoming(kernel, parity, self.pointer("in")))
        if self.rounded:
            f_star = self.mass_kept(kernel, f_star)
        return self.store_step(kernel, parity, f_star)

    def _update(self, role: str, equations: str, parity: int) -> KernelText:
        if self.grid.over == "nodes":
            return NodeText(role, equations, self.unit, parity)
        if self.paired:
            return PairText(role, equations, self.unit, parity)
        over = self.grid.over
        return KernelText(role, over, equations, self.unit, parity=parity, phase="collide")

    def hold(self, parity: int) -> KernelText:
        """One step at a prescribed velocity."""
        title = (self.model.hold.__doc__ or "").partition("\n")[0]
        kernel = self.block_kernel("hold", title, parity)
        kernel.argument("u_held", "real*")
        f = self.incoming(kernel, parity, self.pointer("in"))
        u = [
            kernel.load(f"u_{axis}", f"u_held[cell * {self.lattice.D} + {k}]")
            for k, axis in enumerate(self.model.axes)
        ]
        rate = kernel.argument("hold", "real")
        f_star = self.model.hold(kernel, f, u, rate, self.rates(kernel))
        f_star = self.mass_kept(kernel, f_star) if self.rounded else f_star
        self.store(kernel, parity, f_star, self.pointer("out"))
        return kernel

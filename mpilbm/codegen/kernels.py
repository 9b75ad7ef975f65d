"""The kernels that change a fluid: collide-stream, initial state, state from a file."""

from mpilbm.codegen.cell import KernelText
from mpilbm.codegen.model import Model
from mpilbm.layouts import HERE, Layout

CELL = "const int64 cell = ((plane - origin) * rows + row) * nx + x;"


class FluidKernels:
    """Generates the kernels of a model in a layout, one for each parity of its places."""

    def __init__(self, model: Model, layout: Layout):
        self.model, self.layout, self.lattice = model, layout, model.lattice
        layout.check_in_place(self.lattice)
        self.grid = layout.grid(self.lattice, 1, 1, 1)

    def all(self) -> list[KernelText]:
        """Every kernel that changes or saves the state."""
        makers = (self.collide_stream, self.initialise, self.export_state, self.import_state)
        return [make(parity) for parity in range(self.layout.parities) for make in makers]

    def pointer(self, way: str) -> str:
        """The array that a step reads ("in") or writes ("out"): one and the same in place."""
        return f"f_{way}" if self.layout.buffers > 1 else "f"

    def populations(self, kernel, places, pointer: str) -> list:
        """Q symbols, read at the places given."""
        return [
            kernel.read(f"f_{i}", pointer, "store", self.grid, *place)
            for i, place in enumerate(places)
        ]

    def places(self, what, parity) -> list:
        """Gather, scatter or f_out of all directions."""
        return [what(self.lattice, i, parity) for i in range(self.lattice.Q)]

    def left(self, kernel, parity) -> list:
        """The populations that left the cell in the step before one of this parity."""
        return self.populations(kernel, self.places(self.layout.f_out, parity), "f")

    def collide_stream(self, parity):
        """One step of the cells of some planes."""
        text = f"{self.lattice.name}, layout {self.layout.name}: {self.model.collision.__doc__}"
        kernel = KernelText(f"collide_stream_{parity}", "cells", text)
        gathered = self.places(self.layout.gather, parity)
        f = self.populations(kernel, gathered, self.pointer("in"))
        names = self.model.collision.rates(1.0, self.lattice)
        rates = {name: kernel.argument(name, "real") for name in names}
        f_star = self.model.collide(kernel, f, rates)
        scattered = self.places(self.layout.scatter, parity)
        apart = self.layout.buffers > 1 and all(place.offset == HERE for place in scattered)
        for place, value in zip(scattered, f_star, strict=True):
            if apart:
                kernel.send(self.pointer("out"), "store", self.grid, place.slot, value)
            else:
                kernel.write(self.pointer("out"), "store", self.grid, *place, value)
        return kernel

    def initialise(self, parity):
        """What left each cell in step -1, from rho and u."""
        kernel = self.block_kernel(f"initialise_{parity}", "f_out_i = feq_i(rho, u) + F_i / 2")
        kernel.argument("rho_initial", "double*")
        kernel.argument("u_initial", "double*")
        rest = 1 if self.model.offset else 0
        density = kernel.load("density", f"(real)(rho_initial[cell] - {rest})")
        u = [
            kernel.load(f"u_{axis}", f"(real)u_initial[cell * {self.lattice.D} + {k}]")
            for k, axis in enumerate(self.model.axes)
        ]
        places = self.places(self.layout.f_out, parity)
        for place, value in zip(places, self.model.initial(kernel, density, u), strict=True):
            kernel.write("f", "store", self.grid, *place, value)
        return kernel

    def export_state(self, parity):
        """What left each cell in the lattice's order: the state in the storage's own bits."""
        kernel = self._state_kernel(f"export_{parity}", "state[plane, i, row, x] = f_out_i")
        for canonical, address in self._addresses(parity):
            kernel.do(f"COPY(state, {canonical}, f[{address}]);")
        return kernel

    def import_state(self, parity):
        """The inverse of the export."""
        kernel = self._state_kernel(f"import_{parity}", "f_out_i = state[plane, i, row, x]")
        for canonical, address in self._addresses(parity):
            kernel.do(f"COPY(f, {address}, state[{canonical}]);")
        return kernel

    def _state_kernel(self, name: str, equations: str) -> KernelText:
        kernel = self.block_kernel(name, equations)
        kernel.argument("state", "store*")
        kernel.argument("f", "store*")
        return kernel

    def _addresses(self, parity):
        """C text, for each direction, of its indices in the canonical state and in the field."""
        for i, place in enumerate(self.places(self.layout.f_out, parity)):
            canonical = f"(((plane - origin) * {self.lattice.Q} + {i}) * rows + row) * nx + x"
            yield canonical, self.grid.address(*place)

    def block_kernel(self, name: str, equations: str) -> KernelText:
        """A kernel that also touches plain arrays, which hold the planes from `origin` on."""
        kernel = KernelText(name, "cells", equations)
        kernel.sizes(self.grid)
        kernel.argument("origin", "int64")
        kernel.do(CELL)
        return kernel

"""The kernels of a fluid and the scalars that it carries: one kernel computes a step of all."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mpilbm.codegen.diagnostics import Diagnostics
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FieldKernels, FluidKernels, Options
from mpilbm.codegen.printer import symbol
from mpilbm.codegen.scalar_model import Carrying, Materials, ScalarModel, midway, scalar_values
from mpilbm.codegen.scalar_numbers import buoyant, forcing, material_grid
from mpilbm.codegen.values import KernelValues
from mpilbm.layouts import Layout
from mpilbm.layouts.grid import Grid
from mpilbm.model.case import BoundedLattice, Case
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.sampled import Sampled
from mpilbm.physics.scalars import weights


class ScalarKernels(FieldKernels):
    """The kernels of one scalar, and its part of the step."""

    model: ScalarModel

    def __init__(self, model: ScalarModel, layout: Layout, options: Options) -> None:
        super().__init__(model, layout, options, f"g{model.number}")
        self.label, self.suffix = model.label, model.suffix

    def rates(self, kernel: KernelValues) -> dict[str, Expression]:
        """{name: argument of the kernel, or the number of the material of its cell}."""
        if self.model.materials is not None:
            return self.model.materials.at(kernel).rates
        names = self.model.collision.rates(1.0, self.lattice)
        return {name: kernel.argument(name + self.suffix, "real") for name in names}

    def own(self, parity: int) -> list[KernelText]:
        """The kernels of the scalar alone, in addition to those of its boundary lists."""
        return [self.initialise(parity), self.export_state(parity), self.import_state(parity)]

    def pointer_of(self, way: str) -> str:
        """The array of a step that all fluids and scalars share."""
        return self.pointer(way) + self.suffix

    def arriving(self, kernel: KernelValues, parity: int) -> list[Expression]:
        """The incoming populations, in a kernel that reads all fluids and scalars."""
        return self.incoming(kernel, parity, self.pointer_of("in"), self.grid.name)

    def left(self, kernel: KernelValues) -> list[Expression]:
        """The outgoing populations of the previous step, in such a kernel."""
        assert kernel.parity is not None  # outgoing populations are in places of a parity
        read = self.reader(kernel, f"f{self.suffix}", self.grid.name)
        return self.layout.outgoing(self.lattice, kernel.parity, read, self.model)

    def step(
        self, kernel: KernelText, parity: int, g: Populations, u: Vector, source: Expression
    ) -> None:
        """Collide and store the populations; u: the velocity of the fluid, source: S."""
        unit = kernel.unit
        rates, S = self.rates(kernel), weights(self.lattice, unit * source)
        phi = unit * kernel.known[self.label]
        g_star = self.model.collided(kernel, g, phi, u, S, rates)
        if self.rounded:
            kept = sum(g) + unit * source
            g_star = self.mass_kept(kernel, g_star, kept, f"_{self.grid.name}")
        self.store_step(kernel, parity, g_star, self.pointer_of("out"))


class CarryingKernels(FluidKernels):
    """The kernels of a fluid that carries scalars; `collide_stream` computes a step of all."""

    model: Carrying[ScalarKernels]

    @property
    def scalars(self) -> tuple[ScalarKernels, ...]:
        """The kernels of the scalars."""
        return self.model.scalars

    @property
    def fields(self) -> tuple[FieldKernels, ...]:
        """The fluid, and the scalars, on which the force may depend."""
        return (self, *self.scalars)

    def collide_stream(self, parity: int) -> KernelText:
        """One step of the cells of some planes: the fluid, then each scalar with its velocity."""
        text = f"{self.lattice.name}, layout {self.layout.name}: {self.model.collision.__doc__}"
        kernel = self._update(text, parity)
        unit = kernel.unit
        g = [each.arriving(kernel, parity) for each in self.scalars]
        sums = {each.label: sum(g_k) / unit for each, g_k in zip(self.scalars, g, strict=True)}
        values, sources = midway(kernel, self.scalars, sums, 1)
        for label, value in values.items():
            kernel.known[label] = kernel.let(f"value_of_{label}", value)
        f_star = self.collide(kernel, self.incoming(kernel, parity, self.pointer("in")))
        u = self.flow(kernel)
        if self.rounded:
            f_star = self.mass_kept(kernel, f_star)
        self.store_step(kernel, parity, f_star)
        for each, g_k in zip(self.scalars, g, strict=True):
            each.step(kernel, parity, g_k, u, sources[each.label])
        return kernel

    def all(self) -> list[KernelText]:
        """All kernels that change or export the state; `begin` if a scalar has a source."""
        parities = range(self.layout.parities)
        given = any(each.model.given for each in self.scalars)
        return [*super().all(), *(self.begin(parity) for parity in parities if given)]

    def begin(self, parity: int) -> KernelText:
        """Add half of the source to the outgoing populations of step -1, in equilibrium."""
        kernel = self.block_kernel("begin_scalars", "g_out_i = geq_i + w_i S / 2", parity)
        kernel.optional = parity > 0
        left = [each.left(kernel) for each in self.scalars]
        sums = {each.label: sum(g) for each, g in zip(self.scalars, left, strict=True)}
        _, sources = midway(kernel, self.scalars, sums, 0)
        for each, g in zip(self.scalars, left, strict=True):
            S = weights(each.lattice, sources[each.label])
            g = [g_i + S_i / 2 for g_i, S_i in zip(g, S, strict=True)]
            each.store(kernel, (parity - 1) % self.layout.parities, g, f"f{each.suffix}")
        return kernel

    def known(self, kernel: KernelValues) -> Mapping[str, Expression]:
        """The scalars, on which the viscosity may depend."""
        return scalar_values(kernel, self.scalars)

    def flow(self, kernel: KernelValues) -> list[Expression]:
        """The velocity that carries the scalars, which includes half of the force."""
        model = self.model
        u = [symbol(f"u_{axis}") for axis in model.axes]
        if model.half or model.forcing is None:
            return u
        push = model.collision.velocity(model.force(kernel), symbol("rho"))
        return [v + p / 2 for v, p in zip(u, push, strict=True)]


class CarryingDiagnostics(Diagnostics):
    """The diagnostic kernels of a fluid that carries scalars, whose fields are outputs."""

    fluid: CarryingKernels

    def hidden(self, kernel: KernelText, k: int) -> tuple[str, *tuple[Expression, ...]]:
        """Solid cells that do not conduct the scalar."""
        if k == len(self.fluid.scalars):
            return super().hidden(kernel, k)
        materials = self.fluid.scalars[k].model.materials
        if materials is None:
            return ("solid",)
        return "solid && {1} < R(0.5)", materials.at(kernel).conducts

    def sloped_values(self, kernel: KernelText, parity: int) -> list[Expression]:
        """The value of each scalar."""
        return list(scalar_values(kernel, self.fluid.scalars).values())

    def carrying(
        self, kernel: KernelText, k: int, fluid: str
    ) -> tuple[str, *tuple[Expression, ...]]:
        """Fluid cells, and those of bodies that conduct the scalar."""
        materials = self.fluid.scalars[k].model.materials
        if materials is None:
            return (fluid,)
        return f"({fluid}) || {{2}} > R(0.5)", materials.at(kernel).conducts

    @property
    def sampled(self) -> Sampled:
        """What samples of the flow contain."""
        return Sampled(self.lattice.D, tuple(each.label for each in self.fluid.scalars))

    def in_sample(self, kernel: KernelText, parity: int) -> list[Expression]:
        """The density, the velocity and the scalars in the cell of a kernel, see Sampled."""
        return super().in_sample(kernel, parity) + self.sloped_values(kernel, parity)

    @property
    def output_count(self) -> int:
        """The number of scalars, and 1 for the pressure."""
        return len(self.fluid.scalars) + super().output_count

    def output_text(self, k: int) -> str:
        """The equation of scalar k, or of the pressure after them."""
        return "phi = sum_i g_i" if k < len(self.fluid.scalars) else super().output_text(k)

    def output_value(self, kernel: KernelText, k: int, parity: int) -> Expression:
        """The value of scalar k in the cell of a kernel, or the pressure after them."""
        if k == len(self.fluid.scalars):
            return super().output_value(kernel, k, parity)
        return scalar_values(kernel, self.fluid.scalars)[self.fluid.scalars[k].label]


def scalar_model(case: Case, number: int) -> ScalarModel:
    """The model of one scalar."""
    scalar = case.scalars[number]
    source = scalar.source_value(number, case.labels)
    found = ScalarModel(scalar.lattice, scalar.collision, number, scalar.label, source)
    if not case.conductors:
        return found
    rates = tuple(scalar.collision.rates(1.0, scalar.lattice))
    grid = case.layout.grid(case.lattice, 1, 1, 1)
    assert isinstance(grid, Grid)  # scalars are carried in dense layouts, see Layout.conflicts
    return replace(found, materials=Materials(material_grid(grid), found.suffix, rates))


def carrying_kernels(
    case: Case, options: Options, of_scalar: Callable[[BoundedLattice], Options]
) -> CarryingKernels:
    """The kernels of the fluid; `of_scalar`: the options of those of a scalar, from its lattice."""
    (fluid,) = case.fluids
    # A pair of cells reads populations only. With two scalars it needs so many registers that an
    # H200 ran at 72 % of the copy bandwidth, and at 85 % with one cell per thread.
    paired = options.paired and not case.conductors and len(case.scalars) == 1
    scalars = tuple(
        ScalarKernels(scalar_model(case, k), case.layout, of_scalar(case.of_scalar(k)))
        for k in range(len(case.scalars))
    )
    equations = case.lattice, fluid.collision, forcing(case), case.precision.offset
    pushed, nu = fluid.force is not None, case.viscosity_value
    model = Carrying(*equations, scalars=scalars, buoyant=buoyant(case), pushed=pushed, nu=nu)
    return CarryingKernels(model, case.layout, replace(options, paired=paired))

"""The checked case: the object that all later parts of the program use."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import SkipValidation

from mpilbm.backends import Backend
from mpilbm.case.initial_fields import InitialFields
from mpilbm.case.tables.case_file import Body, Run
from mpilbm.case.tables.scalars import Buoyancy
from mpilbm.codegen.program import OF
from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree, numeric
from mpilbm.core.formulas.values import CellValue, names_in
from mpilbm.core.registry import Parameters
from mpilbm.core.units import Units
from mpilbm.layouts import Layout
from mpilbm.layouts.formats import Formats
from mpilbm.model.box import Domain, Needs, Precision
from mpilbm.model.findings import Finding
from mpilbm.physics.boundaries import Boundary
from mpilbm.physics.collisions import Collision
from mpilbm.physics.couplings import Coupling
from mpilbm.physics.forcing import Forcing
from mpilbm.physics.lattices import Lattice
from mpilbm.physics.motions import moving
from mpilbm.physics.sampled import Sampled
from mpilbm.physics.scalars.boundaries import ScalarBoundary
from mpilbm.physics.scalars.collisions import ScalarCollision
from mpilbm.physics.sloped import Sloped, of_interfaces, of_scalar
from mpilbm.physics.sponges import Sponge
from mpilbm.solids.moving_bodies import FIELDS_OF_BODIES


class Scalar(Parameters):
    """One scalar: `diffusivity` in lattice units, lattice, collision, boundaries.

    `bodies` holds the condition on each body, by its index. `key` is the path of its table in the
    case. `heat_capacity` is in J/(m^3 K). `ratio` is the key, prandtl or schmidt, by which the
    viscosity gives the diffusivity; empty: neither.
    """

    label: str
    key: str
    diffusivity: float
    ratio: str = ""
    lattice: SkipValidation[Lattice]
    collision: SkipValidation[ScalarCollision]
    initial: InitialFields
    source: float | str = 0.0
    heat_capacity: float | None = None
    boundaries: tuple[SkipValidation[ScalarBoundary], ...] = ()
    bodies: tuple[SkipValidation[ScalarBoundary], ...] = ()

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The numeric arguments of its kernels by name: the rates of its collision."""
        return self.collision.rates(self.diffusivity, lattice)

    def source_value(self, number: int, labels: tuple[str, ...]) -> CellValue | None:
        """The source for kernels; None if it is 0. Raises FormulaError."""
        if self.source == 0:
            return None
        return CellValue(f"source_{number}", self.source, self.lattice.D, labels)


class Fluid(Parameters):
    """One fluid: viscosity in lattice units, collision, force and initial fields.

    `formula` is that of a viscosity that depends on scalars, else empty.
    `label` is empty in a case with one fluid. `force` is None without a force or if all of its
    components are 0. `reynolds`, `length` and `velocity` are set if they gave the viscosity.
    """

    label: str = ""
    viscosity: float
    formula: str = ""
    reynolds: float | None = None
    length: float | None = None
    velocity: float | None = None
    collision: SkipValidation[Collision]
    force: SkipValidation[Forcing | None] = None
    initial: InitialFields

    def arguments(self, lattice: Lattice) -> dict[str, float]:
        """The numeric arguments of its kernels by name: viscosity and rates of its collision."""
        return self.collision.arguments(self.viscosity, lattice) | {"viscosity": self.viscosity}


class BoundedLattice(Parameters):
    """A lattice in the box; a subclass adds the conditions on the faces and on the bodies.

    `path` is the file of the case. `given` holds the arrays and functions of a Python program by
    the references in the tables. `frames` holds the frame of each body, see case.py.
    """

    lattice: SkipValidation[Lattice]
    domain: Domain
    precision: Precision
    layout: SkipValidation[Layout]
    path: Path
    given: dict[str, Any] = {}
    frames: tuple[tuple[tuple[float, float], ...], ...] = ()

    @property
    def directory(self) -> Path:
        """The folder of the case file, to which paths in the case are relative."""
        return self.path.parent

    @property
    def dimensions(self) -> int:
        """2 or 3."""
        return len(self.domain.size)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Stored cells (planes, rows, nx): (nz, ny, nx) in 3D, (ny, 1, nx) in 2D.

        (nz, ny, nx / 2) on a staggered lattice, which stores every other node.
        """
        nx, *rest = self.domain.size
        nx //= self.lattice.volume
        return (rest[1], rest[0], nx) if len(rest) == 2 else (rest[0], 1, nx)

    @property
    def formats(self) -> Formats:
        """The number formats of the values that a cell stores."""
        return self.layout.formats(self.lattice, self.precision.storage)


class ScalarSolid(Parameters):
    """A body as a scalar sees it: `boundary` is the condition on the scalar at its surface."""

    label: str
    shape: Any
    mask: str | None
    boundary: SkipValidation[ScalarBoundary]
    motion: None = None  # no scalar acts on bodies that move


class ScalarLattice(BoundedLattice):
    """The lattice of a scalar and the conditions on it; each boundary has one face."""

    boundaries: tuple[SkipValidation[ScalarBoundary], ...]
    bodies: tuple[ScalarSolid, ...]


class Case(BoundedLattice):
    """All that a run needs; lattice, coupling, layout, … are objects of registered classes.

    The fluids are on the lattice of the case; each scalar has a lattice of its own.
    `sound` is the speed of sound in m/s in the fluid that [units] names.
    `toml` is the text of the case file including the overrides of the command line.
    `settings` are those overrides, as texts `key.path=value`.
    `of_keys` has the findings on earlier names of keys, and on lengths and times that are no whole
    number of cells or steps.
    """

    title: str = ""
    fluids: tuple[Fluid, ...]
    coupling: SkipValidation[Coupling | None] = None
    scalars: tuple[Scalar, ...] = ()
    buoyancy: Buoyancy | None = None
    units: Units | None = None
    sound: float | None = None
    backend: SkipValidation[Backend]
    halo: Any  # halo.Halo and outputs.Output are in higher layers
    boundaries: tuple[SkipValidation[Boundary], ...]
    bodies: tuple[Body, ...]
    sponge: tuple[Sponge, ...] = ()
    run: Run
    outputs: tuple[Any, ...]
    toml: str
    settings: tuple[str, ...] = ()
    of_keys: tuple[Finding, ...] = ()

    @property
    def ghost(self) -> int:
        """Number of ghost planes at each end of a slab: the largest distance of a read."""
        boundaries = (*self.boundaries, *(body.boundary for body in self.bodies))
        return max([1, *(boundary.capabilities.planes_behind for boundary in boundaries)])

    @property
    def needs(self) -> Needs:
        """What the outputs need from kernels and geometry."""
        outputs = self.outputs
        measured = [output for output in outputs if output.bodies(self)]
        weighed = tuple(sorted({k for output in outputs for k in output.bodies(self)}))
        return Needs(
            weighed=weighed,
            framed=any(any(map(any, frame)) for k, frame in enumerate(self.frames) if k in weighed),
            split=any(output.splits for output in measured),
            by_cell=any(output.by_cell for output in measured),
            sampled=any(output.samples_flow for output in outputs),
            roles=frozenset(name for output in outputs for name in output.kernels(self)),
            transported=tuple(sorted({k for output in outputs for k in output.scalars(self)})),
        )

    @property
    def single_fluid(self) -> bool:
        """Whether there is one fluid without a coupling.

        Then the pressure is cs2 rho, and only given forces act on the fluid.
        """
        return self.coupling is None and len(self.fluids) == 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the scalars."""
        return tuple(scalar.label for scalar in self.scalars)

    @property
    def conductors(self) -> tuple[int, ...]:
        """Numbers of the bodies that conduct a scalar."""
        found = {k for s in self.scalars for k, body in enumerate(s.bodies) if body.conducts}
        return tuple(sorted(found))

    def of_scalar(self, number: int) -> ScalarLattice:
        """The lattice of a scalar in the same box, with the conditions on the scalar."""
        scalar = self.scalars[number]
        box = {name: getattr(self, name) for name in BoundedLattice.model_fields}
        return ScalarLattice(
            **box | {"lattice": scalar.lattice},
            boundaries=tuple(
                boundary.model_copy(update={"where": (face,)})
                for boundary in scalar.boundaries
                for face in boundary.where
            ),
            bodies=tuple(
                ScalarSolid(label=body.label, shape=body.shape, mask=body.mask, boundary=each)
                for body, each in zip(self.bodies, scalar.bodies, strict=True)
            ),
        )

    @property
    def own_fields(self) -> tuple[str, ...]:
        """The fields besides those of any flow: those of a coupling, or scalars and the pressure;
        those of moving bodies.

        The pressure of one fluid is p = cs2 (rho - rho_0), the static pressure relative to that at
        the density rho_0 = 1; a coupling that defines a pressure has its own.
        """
        if self.coupling:
            return self.coupling.outputs(self)
        return (*self.labels, "pressure", *(FIELDS_OF_BODIES if moving(self) else ()))

    @property
    def sloped(self) -> tuple[Sloped, ...]:
        """The fields whose gradients are summed over the box, stored after the velocity."""
        if self.coupling:
            return of_interfaces(self.coupling.jumps(self))
        return tuple(of_scalar(scalar.label, scalar.diffusivity) for scalar in self.scalars)

    @property
    def in_samples(self) -> Sampled:
        """What a sample of the output `statistics` contains."""
        return Sampled(self.dimensions, self.labels)

    @property
    def kernel_values(self) -> list[CellValue]:
        """The values that kernels evaluate: forces, sources of scalars, viscosity with sponges."""
        found = [value for k in range(len(self.fluids)) for value in self.force_on(k)]
        sources = (s.source_value(k, self.labels) for k, s in enumerate(self.scalars))
        found += [value for value in sources if value is not None]
        return found + ([] if self.viscosity_value is None else [self.viscosity_value])

    @property
    def viscosity_value(self) -> CellValue | None:
        """The formula of the viscosity for kernels; None for a number. Raises FormulaError.

        Sponges add to the formula or the number of the case.
        """
        fluid = self.fluids[0]
        if not fluid.formula and not self.sponge:
            return None
        tree: Tree = fluid.viscosity
        if fluid.formula:
            tree = Formula(fluid.formula, (*names_in(self.dimensions), *self.labels)).tree
        for sponge in self.sponge:
            tree = "+", tree, sponge.tree
        return CellValue("nu", tree, self.dimensions, self.labels)

    def added_viscosity(self, places: Mapping[str, ArrayLike]) -> NDArray[np.float64] | float:
        """What sponges add to the viscosity at points of the box: coordinates by axis, in cells."""
        known = dict(zip(("nx", "ny", "nz"), self.domain.size, strict=False)) | dict(places)
        return sum((numeric(sponge.tree, known) for sponge in self.sponge), start=0.0)

    @property
    def common_viscosity(self) -> float | None:
        """The viscosity that all cells of the box have, in lattice units; None if they differ."""
        (fluid, *others) = self.fluids
        differs = bool(others) or fluid.collision.closure is not None
        return None if differs or self.viscosity_value is not None else fluid.viscosity

    def key(self, fluid: Fluid, name: str) -> str:
        """Key path of a table of a fluid: `collision`, or `fluid.water.collision`."""
        return f"fluid.{fluid.label}.{name}" if len(self.fluids) > 1 else name

    def fluid_key(self, fluid: Fluid, name: str) -> str:
        """Key path of a number of a fluid: `fluid.viscosity`, or `fluid.water.viscosity`."""
        return self.key(fluid, name) if fluid.label else f"fluid.{name}"

    def suffix(self, number: int) -> str:
        """The end of the names of a fluid's kernels and arguments; empty without a coupling."""
        return OF.format(number) if self.coupling else ""

    def force_on(self, number: int) -> list[CellValue]:
        """The components of the force on a fluid; the names of coupled fluids' forces differ."""
        force = self.fluids[number].force
        return force.components(self.suffix(number)) if force else []

    def conditions(self) -> Iterator[tuple[str, Boundary, Any]]:
        """(key path, boundary, shape) of all faces and bodies; no shape at a face, or of a mask."""
        for index, boundary in enumerate(self.boundaries):
            yield f"boundary.{index}", boundary, None
        for body in self.bodies:
            yield f"body.{body.label}.boundary", body.boundary, body.shape

    def objects(self) -> Iterator[tuple[str, Parameters]]:
        """All objects of registered classes in this case, with their key paths."""
        names = ("lattice", "coupling", "layout", "backend", "halo")
        found: list[tuple[str, Any]] = [(name, getattr(self, name)) for name in names]
        for fluid in self.fluids:
            found += [(self.key(fluid, n), getattr(fluid, n)) for n in ("collision", "force")]
        found += [(f"boundary.{index}", thing) for index, thing in enumerate(self.boundaries)]
        for scalar in self.scalars:
            found.append((f"{scalar.key}.collision", scalar.collision))
            found += [(f"{scalar.key}.boundary.{k}", b) for k, b in enumerate(scalar.boundaries)]
            on_bodies = zip(self.bodies, scalar.bodies, strict=True)
            found += [(f"body.{b.label}.scalar.{scalar.label}", each) for b, each in on_bodies]
        for body in self.bodies:
            parts = ("shape", "boundary", "motion")
            found += [(f"body.{body.label}.{n}", getattr(body, n)) for n in parts]
        found += [(f"sponge.{index}", thing) for index, thing in enumerate(self.sponge)]
        found += [(f"output.{index}", thing) for index, thing in enumerate(self.outputs)]
        for where, thing in found:
            yield from _with_parts(where, thing)


def _with_parts(where: str, thing: object) -> Iterator[tuple[str, Parameters]]:
    """An object and the objects in its fields, such as a collision's equilibrium."""
    if isinstance(thing, Parameters):
        yield where, thing
        for name in type(thing).model_fields:
            yield from _with_parts(f"{where}.{name}", getattr(thing, name))

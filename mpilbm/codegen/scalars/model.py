"""The equations of a scalar, and those of a fluid on which scalars act."""

from dataclasses import dataclass, replace
from typing import Any

from mpilbm.codegen.coordinates import centre_of
from mpilbm.codegen.model import Model
from mpilbm.codegen.program import OF
from mpilbm.codegen.scalars.materials import Materials
from mpilbm.codegen.scalars.names import buoyancy_names
from mpilbm.formulas.values import CellValue
from mpilbm.physics.scalars import equilibrium, weights


@dataclass(frozen=True)
class ScalarModel(Model):
    """A scalar phi with its collision; the stored populations add up to phi.

    `number` counts the scalars, `label` is its name in formulas, `given` its source, or None.
    `materials`: those of the cells, or None if no body conducts a scalar.
    """

    number: int = 0
    label: str = ""
    given: CellValue | None = None
    materials: Materials | None = None

    @property
    def suffix(self) -> str:
        """The end of the names of its kernels and arrays."""
        return OF.format(self.number + 1)

    @property
    def any_unit(self) -> bool:
        """True: the equilibrium is linear in phi."""
        return True

    def structure(self) -> dict:
        """Everything that changes the kernel text, as plain data."""
        return {
            "lattice": self.lattice.name,
            "collision": self.collision.structure(),
            "label": self.label,
            "source": self.given and self.given.structure(),
            "materials": self.materials is not None,
        }

    def capacity(self, kernel) -> Any:
        """The heat capacity C in the kernel's cell; the populations add up to C phi."""
        return 1 if self.materials is None else self.materials.at(kernel).capacity

    def at_rest(self, kernel, u) -> list:
        """The velocity that carries the scalar: u in the fluid, 0 in bodies."""
        return u if self.materials is None else self.materials.at(kernel).at_rest(u)

    def macroscopic(self, kernel, f, half: int):
        """Phi twice, as stored density and density; a scalar has no velocity of its own."""
        phi = kernel.let("density", sum(f) / self.capacity(kernel))
        return phi, phi, []

    def initial(self, kernel, density, u, stress=None, rates=None) -> list:
        """Populations in equilibrium."""
        u = self.at_rest(kernel, u)
        return equilibrium(self.lattice, density, u, self.capacity(kernel))

    def source_at(self, kernel, values: dict) -> Any:
        """The source S for the values of all scalars, by label; 0 without one."""
        if self.given is None:
            return 0
        numbers = {name: kernel.argument(name, "real") for name in self.given.numbers}
        here = numbers | centre_of(kernel, self.given, self.lattice) | values
        return self.given.expression(here)

    def collided(self, kernel, g, phi, u, source, rates: dict) -> list:
        """g* = g + S - R(g - geq + S/2); populations, phi and source in the kernel's unit."""
        u, S = self.at_rest(kernel, u), weights(self.lattice, source)
        geq = equilibrium(self.lattice, phi, u, self.capacity(kernel))
        d = [a - b + s / 2 for a, b, s in zip(g, geq, S, strict=True)]
        relaxed = self.collision.relax(self.lattice, d, **rates)
        return [a + s - r for a, s, r in zip(g, S, relaxed, strict=True)]


@dataclass(frozen=True)
class Carrying(Model):
    """A fluid that carries scalars.

    `scalars`: their kernels. `buoyant`: numbers of the scalars that act on the flow. `pushed`:
    whether the case gives a force, too. `nu`: the viscosity, if it is a formula of scalars.
    """

    scalars: tuple = ()
    buoyant: tuple[int, ...] = ()
    pushed: bool = False
    nu: CellValue | None = None

    def force(self, kernel) -> list:
        """The force of the case, and sum_k buoyancy_k (phi_k - reference_k)."""
        D, unit = self.lattice.D, kernel.unit
        found = replace(self, unit=unit)._given(kernel) if self.pushed else [0] * D
        for k in self.buoyant:
            along, reference = buoyancy_names(k, D)
            above = scalar_values(kernel, self.scalars)[self.scalars[k].label]
            above -= kernel.argument(reference, "real")
            found = [
                F + unit * kernel.argument(name, "real") * above
                for F, name in zip(found, along, strict=True)
            ]
        return found

    def _given(self, kernel) -> list:
        return super().force(kernel)


def scalar_values(kernel, scalars) -> dict:
    """The value of each scalar in the cell of a kernel, by label.

    A step supplies them in `kernel.known`; other kernels compute them from outgoing populations.
    """
    if kernel.known:
        return dict(kernel.known)
    sums = {each.label: sum(each.left(kernel)) for each in scalars}
    return midway(kernel, scalars, sums, -1)[0]


def midway(kernel, scalars, sums: dict, half: int) -> tuple[dict, dict]:
    """The value phi and the source S of each scalar, by label, from the sums of populations.

    The source S(phi) at C phi = sum_i g_i + half S/2 follows from one iteration, which is accurate
    to second order. `half` is +1 for incoming and -1 for outgoing populations, 0 in equilibrium.
    """

    def values(sources: dict) -> dict:
        return {
            each.label: (sums[each.label] + half * sources.get(each.label, 0) / 2)
            / each.model.capacity(kernel)
            for each in scalars
        }

    def sources(values: dict) -> dict:
        return {each.label: each.model.source_at(kernel, values) for each in scalars}

    found = sources(values({}))
    if any(each.model.given and each.model.given.fields for each in scalars):
        found = sources(values(found))
    return values(found), found

"""Boundary conditions: what enters a cell, in terms of what left it."""

from typing import ClassVar, Literal

from mpilbm.registry import Parameters

Face = Literal["x-", "x+", "y-", "y+", "z-", "z+"]


class Boundary(Parameters):
    """The populations that enter a cell along links which come from outside the fluid.

    `where` names faces of the box; a body's own boundary has none. A subclass says where its wall
    is (`wall_at`), on which lattices it is defined (None: all), and `incoming`.
    """

    where: tuple[Face, ...] = ()

    wall_at: ClassVar[Literal["half", "node"]] = "half"
    lattices: ClassVar[tuple[str, ...] | None] = None

    @property
    def returns(self) -> bool:
        """Whether what enters is what left along the same link, and nothing else."""
        return False

    def structure(self) -> dict:
        """What shapes the kernel text; entries of equal structure share a kernel and a list.

        All fields but those that `values` hands over and the places; a subclass adds which of its
        values are given, if that changes the text.
        """
        return self.model_dump(exclude={"where", "velocity", "rho"})

    def values(self) -> dict[str, float]:
        """Numbers that the kernel reads for each entry, by the names `incoming` uses."""
        return {}

    def incoming(self, cell) -> dict:
        """{i: expression} of what enters along each c_i, i > 0, whether its link is listed or not.

        `cell` offers `lattice`, `left` (left[j]: the population that left the cell along c_j),
        `arrives` (arrives[j]: the one that streams in along a link of the fluid), `values` (by
        name), `rho`, `density` and `u` of what left the cell, `feq(density, rho, u)`, and
        `stored(rho)`, the density that goes with a rho (see Equilibrium).
        """
        raise NotImplementedError

    def problems(self, case) -> list[str]:
        """Refuse lattices without this boundary, and values of another dimension."""
        found = []
        if self.lattices and case.lattice.name not in self.lattices:
            found.append(f"{self.name} is not defined on {case.lattice.name}; "
                         f"allowed: {', '.join(self.lattices)}")  # fmt: skip
        velocity = getattr(self, "velocity", None)
        if velocity is not None and len(velocity) != case.lattice.D:
            found.append(f"velocity: found {len(velocity)} components; allowed: {case.lattice.D}")
        return found


def by_axis(name: str, vector: tuple[float, ...]) -> dict[str, float]:
    """{name_x: …, name_y: …} of the components of a vector."""
    return {f"{name}_{axis}": value for axis, value in zip("xyz", vector, strict=False)}

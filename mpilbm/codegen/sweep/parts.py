"""The parts of the populations in the moment sweep, by the plane to which they move."""

from collections.abc import Callable

from mpilbm.codegen.sweep.cell import chain
from mpilbm.physics.algebra import pairs
from mpilbm.physics.lattices import Lattice


class Parts:
    """The parts of the populations, by the plane to which they move, and the sums over each part.

    A sum over the populations of a cell is named by axes, "", x, y, z, xx, xy, …: each population
    has the product of these components of c_i as its weight. Sums over a part use the axes within
    the plane only.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        axes = "xyz"[: lattice.D]
        self.sums = ["", *axes, *(axes[a] + axes[b] for a, b in pairs(lattice.D))]
        self.across = axes[-1]

    def weight(self, i: int, axes: str) -> int:
        """The product of the components of c_i along these axes."""
        product = 1
        for axis in axes:
            product *= self.lattice.c[i]["xyz".index(axis)]
        return product

    def part(self, step: int) -> list[int]:
        """Directions whose plane step is `step`."""
        return [i for i in range(self.lattice.Q) if self.lattice.offset(i)[0] == step]

    def in_plane(self, step: int) -> list[str]:
        """The sums within the plane that do not vanish in this part."""
        wanted = [axes for axes in self.sums if self.across not in axes]
        return [axes for axes in wanted if any(self.weight(i, axes) for i in self.part(step))]

    def add(self, step: int, source: str, target: Callable[[str], str]) -> list[str]:
        """C lines that define `target(axes)` as each in-plane sum of `source`[i] over a part."""
        own = self.part(step)
        lines: list[str] = []
        done: set[int] = set()
        plane = self.lattice.D - 1
        mirrored = []
        for i in own:
            back = tuple(-c if k < plane else c for k, c in enumerate(self.lattice.c[i]))
            j = self.lattice.c.index(back)
            if i in done or i == j:
                continue
            done |= {i, j}
            mirrored.append((i, j))
            lines.append(f"const real s_{i} = {source}[{i}] + {source}[{j}];")
            if self.lattice.c[i][:plane] != (0,) * plane:
                lines.append(f"const real d_{i} = {source}[{i}] - {source}[{j}];")
        still = [i for i in own if self.lattice.c[i][:plane] == (0,) * plane]
        for axes in self.in_plane(step):
            terms = [f"{source}[{i}]" for i in still] if not axes else []
            kind = "d" if len(axes) == 1 else "s"
            for i, _ in mirrored:
                weight = self.weight(i, axes)
                terms += [f"{'-' if weight < 0 else ''}{kind}_{i}"] if weight else []
            lines.append(f"const real {target(axes)} = {chain(terms)};")
        return lines

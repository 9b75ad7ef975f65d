"""The values of a cell, of which a body may fill a share, that boundaries in cells use."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from mpilbm.codegen.program import SHARE, Access
from mpilbm.codegen.values import KernelValues
from mpilbm.layouts import HERE, AnyGrid, Place
from mpilbm.layouts.grid import Grid, byte_grid
from mpilbm.model.expressions import Expression, Let, Populations, Vector
from mpilbm.physics.algebra import moments_of, populations
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.collisions import Collision
from mpilbm.physics.lattices import Lattice
from mpilbm.solids.shares import WHOLE


@dataclass(frozen=True)
class CellBody:
    """The bodies that act in cells: their boundary, and the memory of the shares."""

    boundary: Condition
    grid: Grid | None = None

    def beside(self, grid: AnyGrid) -> "CellBody":
        """With the shares beside the memory `grid` of the fluid."""
        assert isinstance(grid, Grid)  # other layouts refuse bodies that act in cells
        return replace(self, grid=byte_grid(SHARE, grid))

    def share(self, kernel: KernelValues) -> Expression:
        """The share of the kernel's cell."""
        assert self.grid is not None  # FluidKernels gives it
        kernel.argument(SHARE, "uint8*")
        access = Access(SHARE, 0, HERE)
        if access not in kernel.reads:
            kernel.reads.append(access)
        place = kernel.address(self.grid, Place(0, HERE))
        return kernel.load("share", share_text(f"{SHARE}[{place}]"))


def share_text(stored: str) -> str:
    """C text of a share, from that of the stored number."""
    return f"(real){stored} * R(1.0 / {WHOLE}.0)"


@dataclass(frozen=True)
class Partial:
    """See model/cell.py."""

    lattice: Lattice
    share: Expression
    omega: Expression
    u: Vector
    u_body: Vector
    beyond: Populations
    collided: Populations
    feq: Callable[[Vector], Populations]
    momentum: Callable[[Vector], Vector]
    let: Let


def beyond_equilibrium(
    collision: Collision, lattice: Lattice, f: Populations, feq: Populations
) -> list[Expression]:
    """f - feq; of a collision without moments above the second order, its moments up to these."""
    left = [a - b for a, b in zip(f, feq, strict=True)]
    if not collision.second_order:
        return left
    _, momentum, second = moments_of(lattice, left)
    return populations(lattice, 0, momentum, second)

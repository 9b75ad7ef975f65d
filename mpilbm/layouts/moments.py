"""Two arrays of moments instead of populations: half the memory and half the memory traffic.

Ranks exchange the stored moments of a plane unchanged, in one message without packing. For results
of N ranks that equal those of one rank in all bits, populations that cross the face would have to
be sent in the floating-point format of the arithmetic:

    bytes per cell of a face           D2Q9   D3Q15, D3Q19   D3Q27
    moments stored in float32          24         40          40
    moments stored in 16 bits          12         20          20
    populations computed in float32    12         20          36

They would save at most half of the bytes, and need a kernel that packs them and a second form of
all kernels that read ghost planes. Within a node the link is not the bottleneck: on two H200 with
512³ cells each, the exchange of moments adds 6 µs to a step of 2.0 ms in 16 bits, and nothing to a
step of 3.2 ms in float32. [tools/measured/scaling/scaling.html, halo `direct`] The chapter
many-gpus of the manual states what the model predicts for networks.
"""

from collections.abc import Sequence
from typing import Any

from mpilbm.core.registry import find, names, register
from mpilbm.layouts import HERE, Layout, Offset, Place, Read, against
from mpilbm.layouts.formats import Formats, Tail
from mpilbm.model.case import Case
from mpilbm.model.expressions import Equations, Expression, Populations, Vector
from mpilbm.physics.algebra import moments_of, pairs
from mpilbm.physics.boundaries import in_cells
from mpilbm.physics.lattices import Lattice

Stored = tuple[Expression, list[Expression], list[Expression]]  # density, u, A
TAIL = 3  # bits of each component of u in the last bits of A in 16-bit storage


@register("layouts", "moments")
class Moments(Layout):
    """Density, velocity and non-equilibrium second moments: 10 values per cell, 6 in 2D.

    rho = sum_i f_i, rho u = sum_i c_i f_i, A = sum_i Q_i f_i - rho u u, Q_i = c_i c_i - cs2 1
    f_i = w_i (rho + rho c_i.u / cs2 + Q_i : (A + rho u u) / (2 cs4))

    f_i are the outgoing populations. The moments represent them exactly if they have no Hermite
    moments above the second order, as after the collision `regularized` with a second-order
    equilibrium, or if these follow from the stored ones, as after `recursive_regularized`; f_i then
    has further terms, of third and higher order. Other collisions and equilibria are refused.
    [Ferrari et al. 2023]

    A force gives the momentum F and the second moments u F + F u, as in other layouts. With
    `recursive_regularized` its higher moments follow from the recursion, too: half of u u F, and so
    on, is added in each step where other layouts add none. The difference is of the order F u^2.

    With precision.storage = "mixed" density and u are stored in float32 and A in 16 bits: 28 bytes
    per cell, 18 in 2D. Each A is rounded by at most 2^-12 of itself, which is 2^-12 |1 - 6 nu| /
    (6 nu) of the viscous stress. With "float16" all values are stored in 16 bits, u with 14
    significant bits instead of 11: the last three bits of A_xx are bits of u_x, those of A_yy are
    bits of u_y, and so on. A_xx, A_yy and A_zz then have 8 significant bits. The changes of u by a
    very slow flow or a very weak force are lost.
    """

    buffers = 2
    populations = False
    dense = False
    sweep = True
    storages = (*Layout.storages, "mixed")
    shares = {"float64": 0.82, "float32": 0.82, "mixed": 0.72, "float16": 0.62}
    past_bodies = 0.79

    def conflicts(self, case: Case) -> list[str]:
        """Also: collisions, equilibria and forces whose higher moments do not follow from those.

        A collision may be `recursive`; its equilibrium then has any moments, see
        Collision.rebuilt.
        """
        found = super().conflicts(case)
        for fluid in case.fluids:
            collision = fluid.collision
            parts: list[tuple[str, str, Any]] = [("collision", "collisions", collision)]
            if not collision.recursive:
                parts.append(("collision.equilibrium", "equilibria", collision.equilibrium))
            parts.append(("force", "forcing", fluid.force))
            wrong = [each for each in parts if each[2] and not _follows(each[2])]
            for key, kind, part in wrong[:1]:
                allowed = ", ".join(n for n in names(kind) if _follows(find(kind, n)))
                found.append(
                    f"stores no moments above the second order, and those of {key} = "
                    f"'{part.name}' do not follow from the stored ones; allowed for {key}: "
                    f"{allowed}"
                )
        return found

    def deviations(self, case: Case) -> list[str]:
        """Storage in 16 bits, and terms of forces and bodies that the recursion replaces."""
        found = []
        if case.precision.storage == "float16":
            found.append("rounds other values to 16 bits than layouts of populations")
        recursive = [fluid for fluid in case.fluids if fluid.collision.recursive]
        if any(fluid.force for fluid in recursive):
            found.append("adds terms of the order F u^2 to the third moments of the force")
        if recursive and in_cells(case):
            label = case.bodies[in_cells(case)[0]].label
            found.append(f"has no third moments of the populations that return in '{label}'")
        return found

    def gather(self, lattice: Lattice, i: int, parity: int) -> Place:
        """The cell x - c_i; the slot has no meaning."""
        return Place(0, against(lattice.offset(i)))

    def slots(self, lattice: Lattice) -> tuple[int, ...]:
        """The numbers of density, u and A in a plane of memory, in this order."""
        return tuple(range(1 + lattice.D + len(pairs(lattice.D))))

    def formats(self, lattice: Lattice, storage: str) -> Formats:
        """With "mixed" storage float32 for density and u, float16 for A.

        In 16 bits the last bits of A_xx are those of u_x, the last bits of A_yy those of u_y, …
        """
        D, tensor = lattice.D, pairs(lattice.D)
        if storage == "mixed":
            return Formats(("float32",) * (1 + D) + ("float16",) * len(tensor))
        usual = super().formats(lattice, storage)
        if storage != "float16":
            return usual
        diagonal = [1 + D + k for k, (a, b) in enumerate(tensor) if a == b]
        return Formats(usual.names, tuple(Tail(1 + a, k, TAIL) for a, k in enumerate(diagonal)))

    def incoming(
        self, lattice: Lattice, parity: int, read: Read, of: Equations
    ) -> list[Expression]:
        """Each population f_i from the moments of the cell x - c_i."""
        return [
            of.rebuilt(*self._moments(lattice, read, against(lattice.offset(i)), i), (i,))[0]
            for i in range(lattice.Q)
        ]

    def outgoing(
        self, lattice: Lattice, parity: int, read: Read, of: Equations
    ) -> list[Expression]:
        """All populations from the moments of the cell."""
        return of.rebuilt(*self._moments(lattice, read, HERE, 0), range(lattice.Q))

    def stored(
        self, lattice: Lattice, parity: int, f: Populations, of: Equations
    ) -> list[tuple[Place, Expression]]:
        """(place, expression) of the moments of the outgoing populations f, in the cell."""
        density, momentum, second = moments_of(lattice, f)
        stored = compress(density, momentum, second, of.rest(density))
        return [(Place(k, HERE), value) for k, value in enumerate(stored)]

    def _moments(self, lattice: Lattice, read: Read, offset: Offset, i: int) -> Stored:
        """Density, u and A of a cell; `i` is a part of the names of values."""
        density, *others = (
            read(f"{name}_{i}", Place(k, offset)) for k, name in enumerate(stored_names(lattice.D))
        )
        return density, others[: lattice.D], others[lattice.D :]


def _follows(part: Any) -> bool:
    """Whether the moments above the second order are zero or follow from the others.

    `part`: a collision, equilibrium or force, or its class.
    """
    return part.second_order or getattr(part, "recursive", False)


def stored_names(D: int) -> list[str]:
    """Names of the stored values: density, u_x, …, a_xx, …"""
    tensor = [f"a_{'xyz'[a]}{'xyz'[b]}" for a, b in pairs(D)]
    return ["density", *(f"u_{axis}" for axis in "xyz"[:D]), *tensor]


def compress(
    density: Expression, momentum: Vector, second: Sequence[Expression], rho: Expression
) -> list[Expression]:
    """Return the stored values from density, momentum, second moments and rho."""
    u = [j / rho for j in momentum]
    of_axes = zip(second, pairs(len(u)), strict=True)
    return [density, *u, *(m - momentum[a] * u[b] for m, (a, b) in of_axes)]

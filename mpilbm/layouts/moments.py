"""Two arrays of moments in place of populations: half the memory and the traffic.

Through a face of a slab travel the stored moments of a plane as they are: one message, nothing to
pack. The populations that cross the face, rebuilt by the sender, would be fewer values, but N ranks
give the bits of one only if these travel in the format of the arithmetic:

    bytes a cell of a face            D2Q9   D3Q15, D3Q19   D3Q27
    moments stored in float32          24         40          40
    moments stored in 16 bits          12         20          20
    populations computed in float32    12         20          36

So populations would save half of the bytes at most, and none where storage has half the bits of
the arithmetic. They would cost a kernel that packs them, and a sweep that reads them in place of
the plane beyond its slab. Nor is the link what holds a step back: on two H200, 512³ cells each, the
exchange of moments is seen for 6 µs of a step of 2.0 ms in 16 bits (periodic; efficiency 98 %),
and not at all in a step of 3.2 ms in float32 (a cavity; 100 %).
[tools/measured/scaling/scaling.md, `halo` = `direct`] Through host memory it would be: at the 5.6
GB/s that `staged` reached there the 21 MB of a slab with two neighbours take 3.8 ms in float32.
"""

from mpilbm.layouts import HERE, Layout, Place, against
from mpilbm.physics.algebra import pairs
from mpilbm.physics.hermite import moments_of, populations
from mpilbm.registry import find, names, register


@register("layouts", "moments")
class Moments(Layout):
    """Density, velocity and non-equilibrium second moments of what left: 10 values, 6 in 2D.

    rho = sum_i f_i, rho u = sum_i c_i f_i, A = sum_i Q_i f_i - rho u u, Q_i = c_i c_i - cs2 1
    f_i = w_i (rho + rho c_i.u / cs2 + Q_i : (A + rho u u) / (2 cs4))

    Nothing is lost where the collision leaves nothing beyond the second moments, as `regularized`
    does; it is defined for these alone. [Ferrari et al. 2023]
    """

    buffers = 2
    populations = False
    dense = False
    sweep = True

    def problems(self, case) -> list[str]:
        """Refuse collisions and forces whose result ten moments cannot hold."""
        whole = ", ".join(n for n in names("collisions") if find("collisions", n).second_order)
        found = super().problems(case)
        for fluid in case.fluids:
            parts = fluid.collision, fluid.collision.equilibrium, fluid.force
            missing = [part.name for part in parts if part and not part.second_order]
            if missing:
                found.append(
                    f"name: 'moments' holds nothing beyond the second moments, but "
                    f"'{missing[0]}' does; allowed: {whole}; choose one, or the layout 'esopull'"
                )
        return found

    def gather(self, lattice, i, parity):
        """The cell from which f_i comes."""
        return Place(0, against(lattice.offset(i)))

    def slots(self, lattice):
        """In order: density, u, A."""
        return tuple(range(1 + lattice.D + len(pairs(lattice.D))))

    def arriving(self, lattice, parity, read, rest):
        """Each from the moments of the cell it comes from."""
        return [
            populations(lattice, *moments, only=(i,))[0]
            for i in range(lattice.Q)
            for moments in [self._moments(lattice, read, rest, against(lattice.offset(i)), i)]
        ]

    def left(self, lattice, parity, read, rest):
        """From the cell's own moments."""
        return populations(lattice, *self._moments(lattice, read, rest, HERE, 0))

    def kept(self, lattice, parity, f, rest):
        """The moments, at home."""
        stored = compress(*moments_of(lattice, f), rest)
        return [(Place(k, HERE), value) for k, value in enumerate(stored)]

    def _moments(self, lattice, read, rest, offset, i):
        stored = [
            read(f"{name}_{i}", Place(k, offset)) for k, name in enumerate(stored_names(lattice.D))
        ]
        return expand(lattice.D, stored, rest)


def stored_names(D: int) -> list[str]:
    """Names of the stored values, in order."""
    tensor = [f"a_{'xyz'[a]}{'xyz'[b]}" for a, b in pairs(D)]
    return ["density", *(f"u_{axis}" for axis in "xyz"[:D]), *tensor]


def compress(density, momentum, second, rest) -> list:
    """What is stored, from density, momentum and second moments."""
    u = [j / rest(density) for j in momentum]
    return [density, *u, *(m - momentum[a] * u[b] for m, (a, b) in _numbered(second, len(u)))]


def expand(D: int, stored, rest):
    """density, momentum and second moments from what is stored."""
    density, u, a = stored[0], stored[1 : 1 + D], stored[1 + D :]
    momentum = [rest(density) * u_a for u_a in u]
    return density, momentum, [A + momentum[i] * u[j] for A, (i, j) in _numbered(a, D)]


def _numbered(tensor, D: int):
    return zip(tensor, pairs(D), strict=True)

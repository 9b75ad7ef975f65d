"""A wall model: the stress of a wall law at a half-way wall, for turbulence on coarse grids."""

from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mpilbm.core.registry import find, names, register
from mpilbm.model.case import Case
from mpilbm.model.cell import Cell
from mpilbm.model.expressions import Expression, Populations, Vector
from mpilbm.physics.algebra import moments_of, pairs
from mpilbm.physics.boundaries.wall_friction import LEAST, ModelledWall, WallFriction
from mpilbm.physics.boundary_capabilities import Capabilities
from mpilbm.physics.equilibria import dot

Floats = NDArray[np.float64]


@register("boundaries", "wall_model")
class WallModel(ModelledWall):
    """Half-way wall with the stress rho u_tau^2 of a wall law, by inverse momentum exchange.

        f_i = f_out_opp(i) + w_i c_i . s,    c_i . n > 0, n inward normal

    Without s this is a wall at rest, which returns the momentum 2 sum_i c_i f_out_opp(i). The
    vector s lies along the wall, s_a = (T_a - 2 sum_i c_ia f_out_opp(i)) / sum_i w_i c_ia^2, so
    that the links of the cell give exactly the momentum T to the fluid:

        T = -rho u_tau^2 u_r / |u_r|,    u_r = u(x + (sample - 1) n) - u_wall along the wall

    u_tau follows from `law` at |u_r| and the height (sample - 1/2) cells; rho, too, is that of the
    sampled cell, or rho_0 = 1 if momentum is rho_0 u (`incompressible`). A wall that slips at u_s
    has s = 2 rho_0 u_s / cs2; along n, and along an axis in which the links of this wall are not
    symmetric, next to other faces and bodies, u_s is u_wall, so that the mass is conserved exactly.
    The same holds at walls of bodies parallel to the faces of the cells.

    At plane walls of bodies that are inclined to the cells the missing populations are those that
    leave the mirror image of the cell: with the normal n of the surface, R = 1 - 2 n n, and the
    density rho, the velocity u and the part P of the second moments beyond equilibrium of the
    outgoing populations,

        f_i = feq_i(rho, u') + w_i H2_i : P' / (2 cs4) + …,
        u' = u - 2 ((u - u_wall) . n) n,    P' = R P R + 2 (T n + n T)

    with the higher moments of `recursive_regularized`. With T = 0 this is a wall without friction,
    along which a uniform flow stays as it is. At curved walls and next to edges of plane ones the
    populations return as at a half-way wall that slips at the velocity of the cell,

        f_i = f_out_opp(i) + 2 w_i rho (c_i . u_s) / cs2,    u_s = u - ((u - u_wall) . n) n

    since the mirror image adds energy to the flow there, and T acts as a force on the cells that
    are 1.5 to 3.5 cells away from the wall. Thin sheets count as curved. At
    inclined and curved walls the mass is not conserved exactly. At inner edges and corners, and at
    slopes of masks and voxels, the wall acts as `bounce_back`. For flows whose first cell is above
    y+ = 5. D2Q9, D3Q15, D3Q19 and D3Q27. [Asmuth et al. 2021, Phys. Fluids 33, 105111]
    """

    sample: int = Field(
        3, ge=1, le=3, description="cell above the wall whose velocity the law gets, 1 at the wall"
    )

    declares = Capabilities(normal=True, inward=2, read_by_others=True)
    lattices = ("D2Q9", "D3Q15", "D3Q19", "D3Q27")

    @property
    def capabilities(self) -> Capabilities:
        """The cells that `sample` needs: inwards of a face, or from the walls of a body."""
        if self.where:
            return replace(self.declares, inward=self.sample - 1)
        return Capabilities(samples=self.sample - 1, conserves=False, read_by_others=True)

    @property
    def height(self) -> float:
        """The distance of the sampled velocity from the wall."""
        return self.sample - 0.5

    def u_tau(self, speed: Floats, viscosity: float) -> Floats:
        """The friction velocity at sampled speeds along the wall."""
        Re = np.maximum(speed * self.height / viscosity, LEAST)
        return speed / self.law.u_plus(Re, (self.roughness or 0.0) / self.height)

    @property
    def layer(self) -> WallFriction | None:
        """The friction at curved walls of bodies."""
        if self.where:
            return None
        keys = ("velocity", "ramp", "law", "roughness")  # which are validated
        return WallFriction.model_construct(**{key: getattr(self, key) for key in keys})

    def problems(self, case: Case) -> list[str]:
        """Errors, also: no constant viscosity, boxes that are too thin, roughness."""
        found = super().problems(case)
        closure = case.fluids[0].collision.closure
        if case.coupling is not None:
            found.append("found with a [coupling]; allowed: one fluid; use bounce_back")
        elif case.fluids[0].formula or (closure and closure.limits()):
            found.append(
                "found with a viscosity that differs from cell to cell; wall laws hold for a "
                "constant one (with a closure that adds an eddy viscosity); use bounce_back"
            )
        for face in self.where:
            axis = "xyz".index(face[0])
            if axis >= case.dimensions:
                continue
            cells = case.domain.size[axis]
            if cells < self.sample:
                found.append(
                    f"sample: found {self.sample} at {face}; the box has {cells} cells along "
                    f"{face[0]}; set sample = {cells}, or use more cells"
                )
        if self.roughness is not None:
            found += self._refused_roughness(self.roughness)
        return found

    def _refused_roughness(self, roughness: float) -> list[str]:
        if not self.law.rough:
            rough = ", ".join(name for name in names("wall_laws") if find("wall_laws", name).rough)
            return [
                f"roughness: the law '{self.law.name}' has none; allowed: {rough}; or remove it"
            ]
        if roughness >= self.height:
            return [
                f"roughness: found {roughness:g}; allowed: less than the height of the sampled "
                f"velocity, {self.height:g} cells; raise sample, or use larger cells"
            ]
        return []

    def incoming(self, cell: Cell) -> dict[int, Expression]:
        """The outgoing population of the same link, plus that of the stress."""
        if not self.where:
            return self._at_body(cell)
        lattice, n = cell.lattice, cell.normal
        links = [i for i, c in enumerate(lattice.c) if dot(c, n) > 0]
        wall = self._wall_velocity(cell)
        force, s = self._force(cell, wall), [2 * u / lattice.cs2 for u in wall]
        for a in (a for a in range(lattice.D) if not n[a]):
            odd, slips = self._slip(cell, links, a, force[a])
            s[a] = cell.let(f"s_{a}", cell.below(odd**2, Fraction(1, 2), slips, s[a]))
        return {i: cell.left[lattice.opp[i]] + lattice.w[i] * dot(lattice.c[i], s) for i in links}

    def _slip(
        self, cell: Cell, links: list[int], a: int, force: Expression
    ) -> tuple[Expression, Expression]:
        """0 where the own links are symmetric along axis a, and s_a that gives the force there."""
        lattice = cell.lattice
        c = {i: lattice.c[i][a] for i in links if lattice.c[i][a]}
        whole = lcm(*(w.denominator for w in lattice.w))
        back = sum(cell.owns(i, 2 * c[i] * cell.left[lattice.opp[i]], 0) for i in c)
        weight = cell.let(f"weight_{a}", sum(cell.owns(i, lattice.w[i], 0) for i in c))
        odd = cell.let(f"odd_{a}", sum(cell.owns(i, whole * lattice.w[i] * c[i], 0) for i in c))
        return odd, cell.below(0, weight, (force - back) / weight, 0)

    def _force(self, cell: Cell, wall: Vector) -> list[Expression]:
        """The force T on the fluid of the cell, along the wall."""
        flow = cell.inward(self.sample - 1) if self.sample > 1 else cell
        along = [0 if n else u - v for n, u, v in zip(cell.normal, flow.u, wall, strict=True)]
        return self.stress(cell, along, self.height, flow.inertia)

    def _at_body(self, cell: Cell) -> dict[int, Expression]:
        """The populations of a cell next to a body, with the stress of the law."""
        lattice, half = cell.lattice, Fraction(1, 2)
        surface, axes, links = cell.surface, range(lattice.D), list(range(1, lattice.Q))
        n, wall = surface.normal, [cell.values.get(f"velocity_{axis}", 0) for axis in "xyz"]
        v = [cell.let(f"wall_{a}", cell.at_surface(wall[a])) for a in axes]
        relative = [cell.let(f"relative_{a}", surface.u[a] - v[a]) for a in axes]
        away = cell.let("away", dot(relative, n))
        along = [each - away * n_a for each, n_a in zip(relative, n, strict=True)]
        force = self.stress(cell, along, surface.height, surface.inertia)
        force = [cell.let(f"force_{a}", each) for a, each in enumerate(force)]
        plane = cell.let("plane_wall", dot(n, n) * (1 - surface.inclined))
        slip, still = [], []
        for a in axes:
            odd, slips = self._slip(cell, links, a, force[a])
            wrong = cell.let(f"wrong_{a}", 1 - plane + n[a] ** 2 + odd**2)
            slip.append(cell.let(f"s_{a}", cell.below(wrong, half, slips, 0)))
            still.append(cell.let(f"still_{a}", cell.below(wrong, half, 0, 2 / lattice.cs2)))
        found = {}
        towards = cell.let("towards", dot([a - b for a, b in zip(cell.u, v, strict=True)], n))
        slides = [cell.let(f"slides_{a}", cell.u[a] - towards * n[a]) for a in axes]
        image = self._image(cell, towards, force)
        for i in links:
            c, w, back = lattice.c[i], lattice.w[i], cell.left[lattice.opp[i]]
            moving = sum(c[a] * still[a] * cell.at_wall(i, wall[a]) for a in axes if c[a])
            half_way = back + w * (dot(c, slip) + moving)
            sliding = back + w * 2 / lattice.cs2 * cell.inertia * dot(c, slides)
            at_angle = cell.below(surface.curved, half, image[i], sliding)
            found[i] = cell.below(surface.inclined, half, half_way, at_angle)
        return found

    def _image(self, cell: Cell, towards: Expression, force: Vector) -> Populations:
        """The outgoing populations of the mirror image of the cell, with the stress of the law.

        towards: the velocity of the cell relative to the wall along the normal.
        """
        n, D, lattice = cell.surface.normal, cell.lattice.D, cell.lattice
        feq = [
            cell.let(f"feq_{i}", f) for i, f in enumerate(cell.feq(cell.density, cell.rho, cell.u))
        ]
        beyond = [f - each for f, each in zip(cell.left, feq, strict=True)]
        second = [cell.let(f"second_{k}", P) for k, P in enumerate(moments_of(lattice, beyond)[2])]
        P = dict(zip(pairs(D), second, strict=True))
        Pn = [sum(P[min(a, b), max(a, b)] * n[b] for b in range(D)) for a in range(D)]
        Pn = [cell.let(f"second_along_{a}", each) for a, each in enumerate(Pn)]
        nPn = cell.let("second_normal", dot(Pn, n))
        turned = [2 * nPn * n[a] - 2 * Pn[a] + 2 * force[a] for a in range(D)]
        turned = [cell.let(f"turned_{a}", each) for a, each in enumerate(turned)]
        image = [P[a, b] + turned[a] * n[b] + turned[b] * n[a] for a, b in pairs(D)]
        image = [cell.let(f"image_{k}", each) for k, each in enumerate(image)]
        u = [cell.let(f"u_image_{a}", cell.u[a] - 2 * towards * n[a]) for a in range(D)]
        return cell.rebuilt(u, image)

    def _wall_velocity(self, cell: Cell) -> list[Expression]:
        """The velocity of the wall in front of the cell; zeros at rest."""
        known = [cell.values.get(f"velocity_{axis}", 0) for axis in "xyz"[: cell.lattice.D]]
        across = cell.lattice.c.index(cell.normal)
        return [cell.at_wall(across, u) for u in known]


def model_at(case: Case, face: str) -> WallModel | None:
    """The wall model of a face; None if it has another boundary."""
    models = (each for each in case.boundaries if isinstance(each, WallModel))
    return next((each for each in models if face in each.where), None)

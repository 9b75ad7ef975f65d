"""The kernels of the forces on bodies, summed by plane: what links, or cells, take from the fluid.

Entries are added in chunks (see prelude.h), then the chunks of a body in a plane one after another.
"""

from collections.abc import Iterator, Sequence

from sympy import Piecewise

from mpilbm.codegen.boundary_cell import HALF, BoundaryCell, Listed
from mpilbm.codegen.cell_values import index
from mpilbm.codegen.entries import OWN, EntryText, mirror_of
from mpilbm.codegen.kernel_text import KernelText
from mpilbm.codegen.kernels import FluidKernels
from mpilbm.codegen.model import Model
from mpilbm.codegen.program import BODY_CELLS
from mpilbm.codegen.sums import ChunkText
from mpilbm.layouts import Offset, against
from mpilbm.model.expressions import Expression
from mpilbm.physics.algebra import dot, pairs
from mpilbm.physics.boundaries import Condition
from mpilbm.physics.boundary_capabilities import LinkValue
from mpilbm.physics.lattices import AXES

SIDES = "mop"  # names of -1, 0 and 1 are SIDES[1 + c]
TURNS = (("y", "z", "x"), ("z", "x", "y"), ("x", "y", "z"))  # torque_c = a f_b - b f_a


def force_kernel(of: Listed, split: bool, framed: bool) -> "ForceText":
    """Sum what the links of a list give to their bodies.

    With f_opp outgoing and f_i incoming, feq_i the equilibrium at rest (rho = 1, u = 0: forces use
    the gauge pressure), and u the velocity of the wall:

        F = -c_i (f_opp + f_i - 2 feq_i) - u (f_opp - f_i)

    A boundary that sets whole cells also replaces arriving populations g_i (possibly from a mirror
    image) by f_i; for these F = -c_i (f_i - g_i) - u (g_i - f_i).
    """
    kernel, boundary = ForceText(of, split, framed), of.boundary
    cell = BoundaryCell(kernel, of)
    given = boundary.values()
    moving = [cell.values[key] for key in (f"velocity_{a}" for a in AXES) if key in given]
    for i, incoming in boundary.incoming(cell).items():
        wanted = {"in": incoming, "out": cell.left[cell.lattice.opp[i]]}
        if kernel.whole:
            wanted["before"] = _arriving(kernel, cell, i, of)
        for axis, u in zip(AXES, moving, strict=False):
            wanted[f"u_{axis}"] = cell.at_wall(i, u, _to_the_wall(cell, boundary, i))
        kernel.wanted[i] = wanted
    return kernel


def _arriving(kernel: "ForceText", cell: BoundaryCell, i: int, of: Listed) -> Expression:
    """What streams in along c_i, or comes from the mirror image."""
    if "slip" not in of.beside:
        return cell.streamed[i]
    kernel.argument("mirrors", "int64*")
    image, there = mirror_of(kernel, of.fluid, i, kernel.per_entry("slipped", "int32*"))
    return Piecewise((image, there), (cell.streamed[i], True))


def _to_the_wall(cell: BoundaryCell, boundary: Condition, i: int) -> Expression:
    """The distance from the cell to the wall along -c_i, in links."""
    value = boundary.capabilities.link_value
    if not boundary.capabilities.uses_distance:
        return HALF if boundary.wall_at == "half" else 0
    if value is LinkValue.DISTANCE_QUADRATIC:
        return cell.below(cell.link(i), 0, -cell.link(i), cell.link(i))
    return cell.link(i)


class ForceText(ChunkText):
    """A kernel over chunks of entries that adds forces and torques of their links.

    wanted   has the values "in" and "out"; with `whole` "before"; at moving walls "u_x", …
    whole    whether the boundary sets whole cells
    split    whether pressure and stress are wanted
    framed   whether bodies have frames, see case/case.py

    In the text, `number_x` is the number of the cell along x; `at_x_p` the coordinate at which a
    link along a c_i with c_x = 1 leaves the body, half a link from its last node (continuous where
    a body crosses a periodic face); `sign_x_p` is -1 if this link reaches the body through a mirror
    and is replaced by its mirror image. `changed_x` is the place of the momentum that arriving
    populations lose, the node behind the first wall.
    """

    def __init__(self, of: Listed, split: bool, framed: bool) -> None:
        fluid, boundary = of.fluid, of.boundary
        text = "F = -c_i (f_opp_out + f_i_in - 2 feq_i(1, 0)) - u_wall (f_opp_out - f_i_in)"
        super().__init__(of, text)
        self.axes, self.split, self.framed = AXES[: fluid.lattice.D], split, framed
        self.whole = boundary.capabilities.whole_cell
        model, still = fluid.model, [0] * self.lattice.D
        assert isinstance(model, Model)  # a fluid, not a scalar, exerts forces
        self.rest = [0.0] * self.lattice.Q
        if not model.offset:
            self.rest = [float(f) for f in model.collision.feq(self.lattice, 1, 1, still)]
        if self.whole:
            self.per_entry("blocked", "uint32*")
        self._declare_more("store*" if fluid.layout.populations else "real*")
        self._numbers = [index(self, axis, self.lattice)(self.cell) for axis in self.axes]

    def _declare_more(self, staging: str) -> None:
        more = {"periodic": "int", "staging": staging}
        more |= {f"box_{axis}": "int" for axis in self.axes}
        if self.split:
            more |= {"stress": "double*", "stress_cell": "int32*", "first_measured": "int64"}
        self.declare(**more)
        if self.framed:
            self.argument("frames", "double*")
            self.per_entry("member", "int32*")

    def missing(self, i: int) -> Offset | None:
        """The cell behind the link; boundaries that set whole cells list other directions, too."""
        return None if self.whole or i == 0 else against(self.lattice.offset(i))

    @property
    def columns(self) -> list[str]:
        """Names of the sums."""
        kinds = {"force": self.axes, "torque": AXES if self.lattice.D == 3 else "z"}
        kinds |= {"pressure": self.axes, "stress": self.axes} if self.split else {}
        return [f"{kind}_{axis}" for kind, axes in kinds.items() for axis in axes]

    def places(self) -> Iterator[str]:
        """C text of the places at which links of the entry leave the body."""
        if self.framed:
            member = self.per_entry("member", "int32*")
            yield f"GLOBAL const double* frame = frames + {2 * self.lattice.D} * (int64){member};"
        for bit, (axis, number) in enumerate(zip(self.axes, self._numbers, strict=True)):
            n, box, wraps = f"number_{axis}", f"box_{axis}", f"(periodic >> {bit} & 1)"
            yield f"const int {n} = (int)({number});"
            for side, at in {
                "o": f"{n} + 0.5",
                "p": f"{n} == 0 && {wraps} ? {box} : {n}",
                "m": f"{n} + 1 == {box} && {wraps} ? 0 : {n} + 1",
            }.items():
                yield from self._place(bit, f"at_{axis}_{side}", at, box)
            yield f"const double sign_{axis}_p = {n} == 0 && !{wraps} ? -1 : 1;"
            yield f"const double sign_{axis}_m = {n} + 1 == {box} && !{wraps} ? -1 : 1;"
        if self.whole:
            yield from self._changed()
        if self.split:
            D, values = self.lattice.D, 1 + self.lattice.D * (self.lattice.D + 1) // 2
            place = f"{values} * (int64)stress_cell[entry - first_measured]"
            yield f"GLOBAL const double* parts = stress + {place};"
            yield f"const double gauge = {float(self.lattice.cs2)!r} * parts[0];"
            for k, (a, b) in enumerate(pairs(D), 1):
                yield f"const double sigma_{a}{b} = parts[{k}];"

    def _place(self, bit: int, name: str, at: str, box: str) -> Iterator[str]:
        """C text of a coordinate of the box, in the frame of the entry's body."""
        if not self.framed:
            yield f"const double {name} = {at};"
            return
        seam, moved = f"frame[{2 * bit}]", f"frame[{2 * bit + 1}]"
        yield f"const double box_{name} = {at};"
        yield f"const double {name} = box_{name} + (box_{name} < {seam} ? {box} : 0) + {moved};"

    def _changed(self) -> Iterator[str]:
        """C text of the walls of the entry, and of the place for changed populations."""
        yield f"const uint32 walls = links & blocked[{OWN}] & ~1u, lowest = walls & (0u - walls);"
        for a, axis in enumerate(self.axes):
            steps = [(i, c[a]) for i, c in enumerate(self.lattice.c) if c[a]]
            sides = {c: " | ".join(f"{1 << i}u" for i, d in steps if d == c) for c in (1, -1)}
            yield (
                f"const double changed_{axis} = lowest & ({sides[1]}) ? at_{axis}_p + 0.5 : "
                f"lowest & ({sides[-1]}) ? at_{axis}_m - 0.5 : at_{axis}_o;"
            )

    def link(self, i: int, values: dict[str, str]) -> Iterator[str]:
        """C text that adds what the link along c_i gives."""
        c, rest = self.lattice.c[i], 2 * self.rest[i]
        out, both = values["out"], f"leaves + enters - {rest!r}"
        if self.whole:
            yield f"const int wall = walls >> {i} & 1;"
            out, both = f"wall ? {out} : {values['before']}", f"wall ? {both} : enters - leaves"
        yield f"const double enters = {self.stored.format(values['in'])}, leaves = {out};"
        yield f"const double both = {both};"
        given: set[str] = set()
        for axis, c_a in zip(self.axes, c, strict=True):
            parts = [f"{'-+'[c_a < 0]} both"] if c_a else []
            u = values.get(f"u_{axis}")
            parts += [f"- (double)({u}) * (leaves - enters)"] if u else []
            if parts:
                given.add(axis)
                yield f"const double gives_{axis} = {self._signed(axis, c_a, ' '.join(parts))};"
                yield f"sum_force_{axis} += gives_{axis};"
        yield from self._torque(c, given)
        if self.split and any(c):
            yield from self._parts(i)

    def _signed(self, axis: str, c_a: int, text: str) -> str:
        """C text with the sign of a component of a vector at a link."""
        if not c_a:
            return text
        sign = f"sign_{axis}_{SIDES[1 + c_a]}"
        return f"({f'(wall ? {sign} : 1)' if self.whole else sign}) * ({text})"

    def _torque(self, c: tuple[int, ...], given: set[str]) -> Iterator[str]:
        """C text that adds place x force, with the components of the force that are `given`."""
        sides = zip(self.axes, c, strict=True)
        place = {axis: f"at_{axis}_{SIDES[1 + c_a]}" for axis, c_a in sides}
        if self.whole:
            place = {axis: f"(wall ? {at} : changed_{axis})" for axis, at in place.items()}
        for a, b, axis in (turn for turn in TURNS if {*turn[:2]} <= {*self.axes}):
            terms = [f"+ {place[a]} * gives_{b}"] if b in given else []
            terms += [f"- {place[b]} * gives_{a}"] if a in given else []
            if terms:
                yield f"sum_torque_{axis} += {' '.join(terms)};"

    def _parts(self, i: int) -> Iterator[str]:
        """C text that adds pressure and stress on the area a_i = 2 w_i c_i / cs2 of the link."""
        lattice, if_wall = self.lattice, "if (wall) " if self.whole else ""
        area = [2 * float(lattice.w[i]) / float(lattice.cs2) * c_a for c_a in lattice.c[i]]
        for a, (axis, c_a) in enumerate(zip(self.axes, lattice.c[i], strict=True)):
            sigma = [f"sigma_{min(a, b)}{max(a, b)}" for b in range(lattice.D)]
            stress = " + ".join(f"{s} * {v!r}" for s, v in zip(sigma, area, strict=True) if v)
            yield f"{if_wall}sum_stress_{axis} += {self._signed(axis, c_a, stress)};"
            if c_a:
                pressure = self._signed(axis, c_a, f"-gauge * {area[a]!r}")
                yield f"{if_wall}sum_pressure_{axis} += {pressure};"


def sums_kernel() -> KernelText:
    """Add the chunks of a body in a plane; entry = group * columns + column."""
    kernel = KernelText("force_sums", "entries", "sum[group, k] = sum over its chunks")
    kernel.declare(columns="int", group_first="int32*", chunk_order="int32*")
    kernel.declare(sum="double*", chunk_sums="double*")
    kernel.do("const int64 group = entry / columns, column = entry % columns;")
    kernel.do("const int32 to = group_first[group + 1];")
    kernel.do("double total = 0;")
    kernel.do("for (int32 k = group_first[group]; k < to; k++)")
    kernel.do("  total += chunk_sums[chunk_order[k] * (int64)columns + column];")
    kernel.do("sum[entry] = total;", writes="sum")
    return kernel


def state_kernel() -> KernelText:
    """Copy the state of the entries `state_rows` of a list; entry = row * names + name."""
    kernel = KernelText("copy_state", "entries", "state[entry, k] = state_of_step[row, k]")
    kernel.declare(state_rows="int32*", state_of_step="real*", state="real*", names="int")
    kernel.do("const int64 there = state_rows[entry / names] * (int64)names + entry % names;")
    kernel.do("state[entry] = state_of_step[there];", writes="state")
    return kernel


def stress_kernel(fluid: FluidKernels, parity: int, lowest: int) -> EntryText:
    """rho - 1 and the stresses xx, xy, … of each listed cell, with the staged incoming populations.

    sigma_ab = -sum_i c_a c_b (g_i - feq_i(rho, u)), g_i = (f_out_i + f_in_i) / 2, with rho and u of
    g. The mean g includes half of the change in a collision, so its second moments are the momentum
    flux at any relaxation rates, with half of the force.
    """
    model, lattice = fluid.model, fluid.lattice
    text = "rho - 1, -sum c_a c_b (g - feq), g = (f_out + f_in) / 2"
    kernel = EntryText("stress", text, fluid, parity, "other")
    kernel.links = ""
    kernel.argument("stress", "double*")
    left = fluid.outgoing(kernel, parity)
    arrived = kernel.arrived(fluid, parity, lowest, prefix="streams")
    means = ((out + into) / 2 for out, into in zip(left, arrived, strict=True))
    g = [kernel.let(f"g_{i}", mean) for i, mean in enumerate(means)]
    density = kernel.let("density", sum(g))
    rho = kernel.let("rho", model.rest(density))
    momentum = [dot([c[a] for c in lattice.c], g) for a in range(lattice.D)]
    u = model.collision.velocity(momentum, rho)
    u = [kernel.let(f"u_{a}", v) for a, v in zip(model.axes, u, strict=True)]
    feq = model.collision.feq(lattice, density, rho, u)
    lack = [kernel.let(f"lack_{i}", b - a) for i, (a, b) in enumerate(zip(g, feq, strict=True))]
    found = [density if model.offset else density - 1]
    for a, b in pairs(lattice.D):
        found.append(dot([c[a] * c[b] for c in lattice.c], lack))
    for k, value in enumerate(found):
        text = f"COPY(stress, entry * {len(found)} + {k}, (double)({{0}}));"
        kernel.do(text, value, writes="stress")
    return kernel


class CellForceText(EntryText):
    """A kernel over chunks of the cells of bodies that adds force and torque, see Boundary.taken.

    `head` has the first of the staged entries of a boundary list in a cell, or -1. The torque is
    about the origin of the coordinates of the body; `framed`: whether bodies have frames, see
    case/case.py.
    """

    role = BODY_CELLS

    def __init__(self, fluid: FluidKernels, parity: int, lowest: int, framed: bool) -> None:
        assert fluid.model.body is not None  # there is such a kernel for these bodies only
        text = f"F = taken from the fluid in a cell: {fluid.model.body.boundary.name}"
        super().__init__(type(self).role, text, fluid, parity, "other", "chunks")
        self.of, self.lattice, self.links = fluid, fluid.lattice, ""
        self.axes = AXES[: fluid.lattice.D]
        self.declare(chunk_first="int32*", chunk_entry="int32*", chunk_sums="double*")
        self.written.add("chunk_sums")
        self.turns = [turn for turn in TURNS if {*turn[:2]} <= {*self.axes}]
        f = self.arrived(fluid, parity, lowest, prefix="streams")
        force = fluid.model.taken(self, f, fluid.rates(self))
        places = [self._place(bit, axis, framed) for bit, axis in enumerate(self.axes)]
        self._add(force, places)

    def _place(self, bit: int, axis: str, framed: bool) -> Expression:
        """The coordinate of the cell's centre, in the frame of its body."""
        number = index(self, axis, self.lattice)(self.cell)
        if not framed:
            return self.load(f"at_{axis}", f"(real)({number}) + R(0.5)")
        self.declare(frames="double*", member="int32*", **{f"box_{axis}": "int"})
        frame = f"frames[{2 * len(self.axes)} * (int64)member[entry] + {2 * bit}"
        box = f"(real)({number}) + R(0.5)"
        across = f"({box} < {frame}] ? box_{axis} : 0)"
        return self.load(f"at_{axis}", f"{box} + {across} + (real){frame} + 1]")

    def _add(self, force: Sequence[Expression], places: Sequence[Expression]) -> None:
        """Add the force, and place x force."""
        F, at = dict(zip(self.axes, force, strict=True)), dict(zip(self.axes, places, strict=True))
        for k, axis in enumerate(self.axes):
            self.do(f"const double taken_{axis} = {{0}};", F[axis])
            self.do(f"total[{k}] += taken_{axis};")
        for k, (a, b, _) in enumerate(self.turns, len(self.axes)):
            text = f"total[{k}] += (double){{0}} * taken_{b} - (double){{1}} * taken_{a};"
            self.do(text, at[a], at[b])

    def driver(self) -> str:
        """The loop over chunks, with the number of columns."""
        return f"FOR_CHUNKS({self.name}_at, {len(self.axes) + len(self.turns)})"

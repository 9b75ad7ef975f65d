"""The moment sweep: CUDA text that updates all cells of some planes from moments to moments.

The frame (sweep.h) moves tiles through shared memory. This module generates its arithmetic: moments
to populations, populations to sums by the plane they move to, sums to moments by the collision.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from sympy import cse, expand, numbered_symbols, sympify

from mpilbm.codegen.model import Model
from mpilbm.codegen.printer import c_text, symbol
from mpilbm.codegen.program import BETWEEN, SHARE, Kernel, SweepSizes
from mpilbm.codegen.sweep.cell import (
    IN_BODY,
    Parts,
    cell_body,
    cell_centres,
    chain,
    collision_lines,
    function,
    population_lines,
)
from mpilbm.codegen.sweep.messages import Messages, by_shape, crossing, messages_text, outgoing
from mpilbm.codegen.sweep.mirrors import FACES, OPTIONAL, entering_through, folded
from mpilbm.codegen.sweep.mirrors import clear as clear_or_mirror
from mpilbm.codegen.sweep.products import fused
from mpilbm.layouts.formats import Formats
from mpilbm.physics.lattices import Lattice

READ = ("f_in", SHARE, *BETWEEN, *BETWEEN.values())  # arrays that no thread writes


def sweep_text(
    model: Model,
    formats: Formats,
    sizes: SweepSizes,
    kernel: Kernel,
    mirrors: Collection[int] = (),
) -> str:
    """The CUDA text.

    Compiler options set those of `Tile.options` (backends/cuda/tiles.py) and WALLS.
    `kernel`: the description of the generic kernel; the sweep takes the same arguments.
    `mirrors`: the faces of the box, of FACES, at which the fluid is mirrored.
    """
    numbers = [a.name for a in kernel.arguments if a.type == "real"]
    values, parts = cell_centres(model), Parts(model.lattice)
    moves = model.body is not None and model.body.moves

    def given(named: Callable[[str], str]) -> str:
        return ", ".join(["R(0)", *numbers, *(values | cell_body(model, named)).values()])

    constants = _constants(parts, sizes, kernel) | _tails(formats)
    weight = None if moves or not model.body else model.body.boundary.capabilities.weight
    outside = ", ".join(["R(0)", *numbers, *values.values()])
    constants["NUMBERS(plane, row, x)"] = given(str)
    between = "NUMBERS_BETWEEN"
    if moves:
        constants[f"{between}(plane, row, x)"] = given(BETWEEN.__getitem__)
    lines = [f"#define {name} {value}" for name, value in constants.items()]
    if weight:  # cells without a share have a function
        lines += ["#if !SHARES_MET", "#undef NUMBERS", f"#define NUMBERS(plane, row, x) {outside}"]
        lines.append("#endif")
    functions = [
        _rebuild(model),
        messages_text(model),
        bounce(model, parts, mirrors),
        clear_or_mirror(parts, mirrors) if mirrors else clear(parts),
        reflect(parts),
        _advance(parts),
        _finish(model, parts, [*numbers, *values, *cell_body(model, str)]),
    ]
    if weight:
        functions.append(_finish(model, parts, [*numbers, *values], weight))
    packets, copies, walls, bodies, *frames = (
        _frame(name, bool(mirrors))
        for name in ("packets", "copies", "walls", "bodies", "sweep", "two_steps")
    )
    if not moves:  # the values of a cell are the same in both steps
        frames = [frame.replace(between, "NUMBERS") for frame in frames]
    if moves:
        functions.insert(0, Path(__file__).with_name("moving.h").read_text("utf-8"))
    arithmetic = "\n".join(functions)
    return "\n".join([*lines, copies + packets, "", walls + bodies + arithmetic, "", *frames])


def _frame(name: str, mirrors: bool) -> str:
    """A file of the frame; WHERE_MIRRORS(text) in it stands for this text if there are mirrors."""
    text = Path(__file__).with_name(f"{name}.h").read_text("utf-8")
    return OPTIONAL.sub(r"\1" if mirrors else "", text)


def sweep_sizes(lattice: Lattice, formats: Formats) -> SweepSizes:
    """The sizes that the launcher of the sweep needs."""
    widths = formats.widths
    reach = int(any(lattice.offset(i)[1] for i in range(lattice.Q)))
    wide = sum(width > 1 for width in widths)
    return SweepSizes(len(widths), wide, crossing(lattice), reach)


def _constants(parts: Parts, sizes: SweepSizes, kernel: Kernel) -> dict[str, str | int]:
    """Constants of the lattice and of the kernel's arguments that the frame uses."""
    lattice = parts.lattice
    arguments = [f"{'const ' if a.name in READ else ''}{a.type} {a.name}" for a in kernel.arguments]
    names = [a.name for a in kernel.arguments]
    return {
        "VALUES": sizes.values,
        "WIDE": sizes.wide,
        "Q": lattice.Q,
        "REACH": sizes.reach,
        "SUMS": len(parts.sums),
        "RISING": len(parts.in_plane(1)),
        "ARGUMENTS": ", ".join(arguments),
        "GIVEN": ", ".join(names),
        "PLANE(p)": "((p) + TURN(f, p))" if "f_turn" in names else "(p)",
        "ROOM": len(FACES),
    }


def _tails(formats: Formats) -> dict[str, str | int]:
    """Constants of the values with tails, see layouts/formats.py: -1 for a value without."""
    tails = formats.tails
    carriers = "".join(f"(v) == {tail.head} ? {tail.carrier} : " for tail in tails)
    heads = "".join(f"(v) == {tail.carrier} ? {tail.head} : " for tail in tails)
    return {
        "TAIL": max((tail.bits for tail in tails), default=0),
        "CARRIER_OF(v)": f"({carriers}-1)",
        "HEAD_IN(v)": f"({heads}-1)",
    }


def _rebuild(model: Model) -> str:
    Q = model.lattice.Q
    lines = population_lines(model, "values[{}]", list(range(Q)))
    lines += [f"f[{i}] = f_{i};" for i in range(Q)]
    return function("rebuild(const real* values, real* f)", lines)


def _advance(parts: Parts) -> str:
    """C function: sums of the next cell over populations from the plane below and its own plane."""
    lines = parts.add(0, "f", lambda axes: f"mid_{axes}")
    middle, rising = parts.in_plane(0), parts.in_plane(1)
    for k, axes in enumerate(parts.sums):
        within = axes.replace(parts.across, "")
        terms = [f"rising[{rising.index(within)}]"] if within in rising else []
        terms += [f"mid_{axes}"] if axes in middle else []
        lines.append(f"current[{k}] = {chain(terms) or 'R(0)'};")
    up = parts.add(1, "f", lambda axes: f"up_{axes}")
    up += [f"rising[{k}] = up_{axes};" for k, axes in enumerate(rising)]
    lines += ["{", *(f"  {line}" for line in up), "}"]
    return function("advance(real* current, real* rising, const real* f)", lines)


def _finish(model: Model, parts: Parts, numbers: list[str], weight: str | None = None) -> str:
    """C function: add the populations from the plane above, collide, and compute stored values.

    `weight`: of cells without a solid share, see Capabilities.weight.
    """
    down = parts.in_plane(-1)
    lines = parts.add(-1, "f", lambda axes: f"down_{axes}")
    for k, axes in enumerate(parts.sums):
        within, times = axes.replace(parts.across, ""), axes.count(parts.across)
        term = f" {'-' if times == 1 else '+'} down_{within}" if within in down else ""
        lines.append(f"const real sum_{axes} = current[{k}]{term};")
    lines += collision_lines(model, weight)
    types = {IN_BODY: "const InBody&"}
    declared = "".join(f", {types.get(name, 'real')} {name}" for name in numbers)
    head = f"finish(real* stored, const real* current, const real* f, real{declared})"
    return function(head, lines)


def bounce(model: Model, parts: Parts, mirrors: Collection[int] = ()) -> str:
    """C function: add what half-way walls return, f_opp + feq_i(1, u) - feq_opp(1, u).

    A link that crosses several walls belongs to the last of them, and one that also crosses mirrors
    to the wall. An outgoing population is in the messages or, if it stays in its thread, in f.
    Mirrors across planes return populations, too.
    """
    return by_shape(parts.lattice, lambda messages: _bounce(model, parts, messages, mirrors))


def _bounce(model: Model, parts: Parts, messages: Messages, mirrors: Collection[int]) -> str:
    lattice, walls = parts.lattice, [face for face in range(len(FACES)) if face not in mirrors]
    lines = ["real sums[SUMS] = {};"]
    for face in walls:
        entering = entering_through(lattice, face)
        if not entering:
            continue
        lines.append(f"if (faces & {1 << face}) {{")
        lines.append(f"  const int later = faces & {63 & ~(1 << face)} & walls.later[{face}];")
        for i in entering:
            others = sum(1 << k for k in walls if k != face and i in entering_through(lattice, k))
            lines.append(f"  const bool own_{i} = !(later & {others});")
            lines.append(f"  real f_{i} = own_{i} ? {outgoing(messages, lattice.opp[i])} : R(0);")
        lines += [f"  {line}" for line in _moved(model, face, entering)]
        terms = {axes: _signed(parts, entering, axes) for axes in parts.sums}
        known: dict[tuple[str, ...], str] = {}
        for k, one in enumerate(terms.values()):
            if one and one not in known:
                known[one] = f"part_{k}"
                lines.append(f"  const real part_{k} = {chain(list(one))};")
        lines += [f"  sums[{k}] += {known[one]};" for k, one in enumerate(terms.values()) if one]
        lines.append("}")
    lines.append("for (int s = 0; s < SUMS; s++) to[s] += sums[s];")
    lines += folded(parts, mirrors)
    values = "const real* messages, int at, const real (*f)[Q], int c, real* to"
    return function(f"bounce(int faces, const Walls& walls, {values})", lines)


def _moved(model: Model, face: int, entering: list[int]) -> list[str]:
    """C lines that add the effect of a wall's motion: 2 w_i c_i.u / cs2 and higher odd terms."""
    lattice = model.lattice
    axes = "xyz"[: lattice.D]
    lines = [f"if (walls.moving & {1 << face}) {{"]
    if not model.collision.equilibrium.second_order:
        u = [symbol(f"u_{a}") for a in axes]
        lines += [f"  const real u_{a} = (real)walls.u[{face}][{k}];" for k, a in enumerate(axes)]
        feq = [expand(f_i) for f_i in model.collision.feq(lattice, 0, 1, u)]
        odd = [feq[i] - feq[lattice.opp[i]] for i in entering]
        shared, odd = cse(odd, numbered_symbols("motion_", real=True))
        lines += [f"  const real {name} = {fused(value)};" for name, value in shared]
        for i, value in zip(entering, odd, strict=True):
            lines.append(f"  if (own_{i}) f_{i} += ({fused(value)}) * (R(1) / UNIT);")
        return [*lines, "}"]
    for k, a in enumerate(axes):
        lines.append(f"  const real u_{a} = (real)walls.u[{face}][{k}] * (R(1) / UNIT);")
    for i in entering:
        c, factor = lattice.c[i], c_text(sympify(2 * lattice.w[i] / lattice.cs2))
        along = chain([f"{'-' if c[k] < 0 else ''}u_{a}" for k, a in enumerate(axes) if c[k]])
        lines.append(f"  if (own_{i}) f_{i} += {factor} * ({along});")
    return [*lines, "}"]


def _signed(parts: Parts, entering: list[int], axes: str) -> tuple[str, ...]:
    """The terms of a sum over incoming populations."""
    weights = {i: parts.weight(i, axes) for i in entering}
    return tuple(f"{'-' if weight < 0 else ''}f_{i}" for i, weight in weights.items() if weight)


def clear(parts: Parts) -> str:
    """C function: set populations to zero that would come through walls along rows and x."""
    lines: list[str] = []
    for face in range(4):
        gone = " ".join(f"f[{i}] = R(0);" for i in entering_through(parts.lattice, face))
        lines += [f"if (faces & {1 << face}) {{ {gone} }}"] if gone else []
    return function("clear(int faces, real* f)", lines)


def reflect(parts: Parts) -> str:
    """C function: add f_opp of each population i whose bit is set in `links`, see bodies.h."""
    return by_shape(parts.lattice, lambda messages: _reflect(parts, messages))


def _reflect(parts: Parts, messages: Messages) -> str:
    lattice, named = parts.lattice, {1: "up", 0: "mid", -1: "down"}
    lines = ["real back[Q];", "back[0] = R(0);"]
    for i in range(1, lattice.Q):
        own = outgoing(messages, lattice.opp[i])
        lines.append(f"back[{i}] = links & {1 << i}u ? {own} : R(0);")
    for step, name in named.items():
        lines += parts.add(step, "back", f"{name}_{{}}".format)
    for k, axes in enumerate(parts.sums):
        within, times = axes.replace(parts.across, ""), axes.count(parts.across)
        there = [step for step in named if within in parts.in_plane(step) and (step or not times)]
        terms = [f"{'-' if step**times < 0 else ''}{named[step]}_{within}" for step in there]
        lines.append(f"to[{k}] += {chain(terms)};")
    values = "const real* messages, int at, const real (*f)[Q], int c, real* to"
    return function(f"reflect(uint32 links, {values})", lines)

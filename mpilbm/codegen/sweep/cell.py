"""The arithmetic of one cell in the moment sweep, as C lines: moments to populations, collision.

All values are in the unit of the storage (UNIT in sweep.h). Products that are added are written as
fma, so that all compilers round them alike.
"""

from collections.abc import Callable
from dataclasses import replace

from sympy import Symbol, collect, expand, factor, factor_terms, sympify

from mpilbm.codegen.cell_values import behind_cut, share_text
from mpilbm.codegen.model import Macroscopic, Model
from mpilbm.codegen.printer import c_text, symbol
from mpilbm.codegen.program import MOTION, MOVED, SHARE
from mpilbm.codegen.sweep.products import fused, of_empty_cells
from mpilbm.codegen.values import centre
from mpilbm.core.formulas.values import CellValue
from mpilbm.layouts import moments
from mpilbm.model.expressions import Expression, Let, Rates
from mpilbm.physics import algebra
from mpilbm.physics.algebra import pairs
from mpilbm.physics.lattices import Lattice

IN_BODY = "in_body"  # the place of a cell in a body that moves, see moving.h


def chain(terms: list[str]) -> str:
    """a + b - c …, from left to right."""
    return " + ".join(terms).replace("+ -", "- ")


def function(head: str, lines: list[str]) -> str:
    """A C device function, from its head and the lines of its body."""
    return f"INLINE void {head}\n{{\n" + "\n".join(f"  {line}" for line in lines) + "\n}"


def population_lines(model: Model, load: str, wanted: list[int], sign: str = "") -> list[str]:
    """C lines that load the moments of a cell and compute its populations `wanted`, named f_i.

    f_i = w_i (density - tr m / (2 cs2) + c_i c_i : m / (2 cs4) + c_i.j / cs2), all in the unit of
    the storage. The lines of a population, and its bits, do not depend on which others are wanted.
    Here j is UNIT times the momentum: a power of two changes no bit. `sign`: C text of 1 or -1;
    with -1, f_i is the population of the opposite direction. Collisions that leave higher moments
    have other lines.
    """
    if not model.collision.second_order:
        return _rebuilt_lines(model, load, wanted, sign)
    lattice, D = model.lattice, model.lattice.D
    axes, names = "xyz"[:D], moments.stored_names(D)
    lines = [f"const real {name} = {load.format(k)};" for k, name in enumerate(names)]
    rho = "fma(UNIT * UNIT, density, UNIT)" if model.offset else "UNIT * density"
    lines.append(f"const real scaled_rho = {rho};")
    lines += [f"const real j_{a} = scaled_rho * u_{a};" for a in axes]
    for a, b in pairs(D):
        name = axes[a] + axes[b]
        lines.append(f"const real m_{name} = fma(j_{axes[a]}, u_{axes[b]}, a_{name});")
    trace = chain([f"m_{a}{a}" for a in axes])
    lines.append(f"const real base = fma({_number(-1 / (2 * lattice.cs2))}, {trace}, density);")
    done: set[str] = set()
    for i in wanted:
        for line in _population(lattice, i, sign):
            if line not in done:
                lines.append(line)
            done.add(line)
    return lines


def _rebuilt_lines(model: Model, load: str, wanted: list[int], sign: str) -> list[str]:
    """`population_lines` of Collision.rebuilt, for any collision.

    All but u is in the unit of the storage. f_-i(u) = f_i(-u), so `sign` multiplies u.
    """
    D, factor = model.lattice.D, f"{sign} * UNIT" if sign else "UNIT"
    names = moments.stored_names(D)
    loads = [load.format(k) for k in range(len(names))]
    loads[1 : 1 + D] = [f"{factor} * {value}" for value in loads[1 : 1 + D]]
    lines = [f"const real {name} = {value};" for name, value in zip(names, loads, strict=True)]
    density, *others = map(symbol, names)
    rho = density
    if model.offset:
        lines.append("const real at_rest = R(1) / UNIT;")
        rho = density + symbol("at_rest")
    defined: dict[Symbol, Expression] = {}

    def let(name: str, expression: Expression) -> Expression:
        if not expression.args:
            return expression
        defined[symbol(name)] = expression
        return symbol(name)

    given = model.lattice, density, rho, others[:D], others[D:]
    f = model.collision.rebuilt(*given, let=let)
    for i in wanted:
        defined[symbol(f"f_{i}")] = f[i]
    needed = {symbol(f"f_{i}") for i in wanted}
    for name in reversed(defined):
        needed |= defined[name].free_symbols if name in needed else set()
    return lines + [
        f"const real {name} = {fused(value, products_last=True)};"
        for name, value in defined.items()
        if name in needed
    ]


def _population(lattice: Lattice, i: int, towards: str) -> list[str]:
    """Lines that end with f_i; lines that several populations share come first."""
    w, c, cs2 = lattice.w[i], lattice.c[i], lattice.cs2
    forward = c if c >= tuple(-a for a in c) else tuple(-a for a in c)
    moving = [a for a in range(lattice.D) if c[a]]
    if not moving:
        return [f"const real f_{i} = {_number(w)} * base;"]
    group = "".join("xyz"[a] for a in moving)
    weight, even = _number(w / (2 * cs2**2)), f"even_{group}"
    squares = chain([f"m_{'xyz'[a]}{'xyz'[a]}" for a in moving])
    speed = len(moving)
    lines = [
        f"const real base_{speed} = {_number(w)} * base;",
        f"const real {even} = fma({weight}, {squares}, base_{speed});",
    ]
    for a, b in pairs(lattice.D):
        if a != b and c[a] * c[b]:
            before, even = even, f"{even}{'m' if c[a] * c[b] < 0 else 'p'}"
            factor = _number(c[a] * c[b] * w / cs2**2)
            product = f"m_{'xyz'[a]}{'xyz'[b]}"
            lines.append(f"const real {even} = fma({factor}, {product}, {before});")
    odd = chain([f"{'-' if forward[a] < 0 else ''}j_{'xyz'[a]}" for a in moving])
    sign = 1 if forward == c else -1
    factor = f"{_number(sign * w / cs2)} * (R(1) / UNIT)"
    factor = f"{towards} * ({factor})" if towards else factor
    return [*lines, f"const real f_{i} = fma({factor}, {odd}, {even});"]


def _rest(model: Model) -> str:
    """C text of rho, in units of one, from the stored density."""
    return "fma(UNIT, density, R(1))" if model.offset else "density"


def _number(value: Expression) -> str:
    return c_text(sympify(value))


def cell_centres(model: Model) -> dict[str, str]:
    """C text of the coordinates in the formulas of a cell, at a `plane`, `row` and `x`."""
    used = {axis for value in _formulas(model) for axis in value.coordinates}
    across = "plane + below"
    index = {"x": "x", "y": across} if model.lattice.D == 2 else {"x": "x", "y": "row", "z": across}
    index |= {axis: behind_cut(axis, text) for axis, text in index.items() if axis in model.cut}
    return {f"cell_{axis}": centre(index[axis]) for axis in "xyz" if axis in used}


def _formulas(model: Model) -> list[CellValue]:
    """The values that a cell computes from its place: the force, and the viscosity."""
    found = model.forcing.components() if model.forcing else []
    return found if model.nu is None else [*found, model.nu]


def collision_lines(model: Model, weight: str | None = None) -> list[str]:
    """C lines from density, j and second moments to the stored values after the collision.

    `weight`: of cells without a solid share, see Capabilities.weight; the values have the bits of a
    share of 0.
    """
    shared = model.body is not None and weight is None
    lattice, D = model.lattice, model.lattice.D
    axes, tensor = "xyz"[:D], pairs(D)
    lines = ["const real density = sum_;", f"const real rho = {_rest(model)};"]
    lines.append("const real inverse = reciprocal(rho);")
    for value in _formulas(model):
        if value.coordinates:
            names = {name: symbol(name) for name in value.numbers}
            names |= {axis: symbol(f"cell_{axis}") for axis in value.coordinates}
            lines.append(f"const real {value.name} = {c_text(value.expression(names))};")
    if shared:
        lines.append("const real fluid_part = R(1) - share;")
    for axis in axes:
        momentum = f"fma(R(0.5), scaled_{axis}, sum_{axis})" if model.half else f"sum_{axis}"
        if model.forcing:
            part = "fluid_part * " if shared else ""
            lines.append(f"const real scaled_{axis} = {part}force_{axis} * (R(1) / UNIT);")
        lines.append(f"const real j_{axis} = {momentum};")
        lines.append(f"const real u_{axis} = j_{axis} * inverse, v_{axis} = u_{axis} * UNIT;")
    moves = model.body is not None and model.body.moves
    if moves:
        lines.append(f"const Velocity body = velocity_in({IN_BODY});")
        lines += [f"const real slip_{a} = fma(body.{a}, R(1) / UNIT, -u_{a});" for a in axes]
    for a, b in tensor:
        name = axes[a] + axes[b]
        second = f"fma({_number(-lattice.cs2)}, density, sum_{name})" if a == b else f"sum_{name}"
        lines.append(f"const real a_{name} = fma(-j_{axes[a]}, v_{axes[b]}, {second});")

    closure = model.collision.closure
    normal = closure is None or closure.normal_numbers

    def let(name: str, expression: Expression) -> Symbol:
        if name != weight:
            lines.append(f"const real {name} = {fused(sympify(expression), normal=normal)};")
        return symbol(name)

    for k, value in enumerate(_leaving(model, let)):
        text = of_empty_cells(value, weight) if weight else fused(value, products_last=moves)
        lines.append(f"stored[{k}] = {text};")
    return lines


def _leaving(model: Model, let: Let) -> list[Expression]:
    """The stored values of the outgoing populations, in density, rho, u, a and the numbers.

    `a` are the second moments minus rho u u; all but rho and the rates are in the unit of the
    storage. Exact, because moments above the second order do not change those below. u is momentum
    over rho; the equilibrium may define its velocity differently.
    """
    lattice, D = model.lattice, model.lattice.D
    axes, tensor = "xyz"[:D], pairs(D)
    rho, unit = symbol("rho"), symbol("UNIT")
    density = unit * symbol("density")
    u = [unit * symbol(f"u_{a}") for a in axes]
    force = [unit * symbol(f"scaled_{a}") if model.forcing else 0 for a in axes]
    momentum = [rho * v - model.half * F / sympify(2) for v, F in zip(u, force, strict=True)]
    second = [unit * symbol(f"a_{axes[a]}{axes[b]}") + rho * u[a] * u[b] for a, b in tensor]
    f = algebra.populations(lattice, density, momentum, second)
    u = model.collision.velocity([rho * v for v in u], rho)
    rates: Rates = {name: symbol(name) for name in model.collision.arguments(1.0, lattice)}
    if model.nu is not None:
        rates = model.rates_at(rates, symbol("nu"), let)
    share, slip = symbol("share") if model.body else None, []
    u_body: list[Expression] = []
    if model.body and model.body.moves:
        slip = [symbol(f"slip_{a}") for a in axes]
        u_body = [unit * (symbol(f"u_{a}") + s) for a, s in zip(axes, slip, strict=True)]
        model = replace(model, body=replace(model.body, moves=False))  # all moments are known
    model = replace(model, collision=model.collision.up_to_second())
    at = Macroscopic(density, rho, u)
    left = model.collide_at(f, at, force, rates, let, share, u_body)
    if model.body:  # each population once, not in every moment: half of the time
        left = [expand(f_i) for f_i in left]
    density, momentum, second = algebra.moments_of(lattice, left)
    momentum, second = [expand(j) for j in momentum], [expand(m) for m in second]
    stored = moments.compress(expand(density), momentum, second, rho)
    stored, inverse = [expand(value / unit) for value in stored], symbol("inverse")
    if model.body is None:
        return [factor_terms(value.subs(1 / rho, inverse)) for value in stored]
    a = [symbol(f"a_{axes[i]}{axes[j]}") for i, j in tensor]
    v = [symbol(f"u_{axis}") for axis in axes]
    known = [*a, *(v[i] * v[j] for i, j in tensor), *v]
    known = [*a, *(slip[i] * slip[j] for i, j in tensor if slip), *slip, *known[len(a) :]]
    stored = [collect(value, known, func=factor) for value in stored]
    return [value.xreplace({1 / rho: inverse}) for value in stored]


def cell_body(model: Model, named: Callable[[str], str]) -> dict[str, str]:
    """C text of the solid share of a cell and of its place in a body, at a `plane`, `row` and `x`.

    named: the name of an array, of which there may be another one.
    """
    if not model.body:
        return {}
    place = f"(int64)(plane) * {SHARE}_plane + ((row) * {SHARE}_row + (x))"
    found = {"share": share_text(f"{named(SHARE)}[{place}]")}
    if model.body.moves:
        flat = model.lattice.D == 2
        index = ["x", "plane + below"] if flat else ["x", "row", "plane + below"]
        at = ", ".join([*map(centre, index), *["R(0)"] * flat])
        number = f"{named(MOVED)}[{place}]"
        found[IN_BODY] = f"InBody{{{named(MOTION)}, {number}, {at}}}"
    return found


class Parts:
    """The parts of the populations, by the plane to which they move, and the sums over each part.

    A sum is named by axes, "", x, y, z, xx, xy, …: each population has the product of these
    components of c_i as its weight. Sums over a part use the axes within the plane only.
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

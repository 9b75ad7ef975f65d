"""The moment sweep: CUDA text that updates all cells of some planes from moments to moments.

The frame (sweep.h) moves tiles through shared memory; here its arithmetic is made: moments to
populations, populations to sums by the plane they go to, sums to moments through the collision.
"""

from pathlib import Path

from sympy import expand, factor_terms, sympify
from sympy.core import Add, Mul

from mpilbm.codegen.model import Model
from mpilbm.codegen.printer import c_text, symbol
from mpilbm.layouts import moments

WAYS = ((1, 1), (1, -1), (2, 1), (2, -1))  # of a halo cell: axis of the offset and sign, inwards


def sweep_text(model: Model, kernel) -> str:
    """The text, for nvcc's or NVRTC's -DTX, -DTY, -DSTAGES and -DBLOCKS; `kernel` is the
    description of the generic kernel, whose arguments it shares."""
    lattice = model.lattice
    numbers = [a for a in kernel.arguments if a.type == "real"]
    arguments = [
        f"{'const ' if a.name == 'f_in' else ''}{a.type} {a.name}" for a in kernel.arguments
    ]
    reach = int(any(lattice.offset(i)[1] for i in range(lattice.Q)))
    parts = Parts(lattice)
    constants = {
        "VALUES": len(moments.stored_names(lattice.D)),
        "Q": lattice.Q,
        "REACH": reach,
        "SUMS": len(parts.sums),
        "RISING": len(parts.in_plane(1)),
        "DEPOSITS": len(parts.moving),
        "ARGUMENTS": ", ".join(arguments),
        "NUMBERS": ", ".join(["R(0)", *(a.name for a in numbers)]),
    }
    lines = [f"#define {name} {value}" for name, value in constants.items()]
    lines += ["#define TILE_VALUES ((TX + 2) * (TY + 2 * REACH))"]
    functions = [
        _rebuild(model),
        _deposit(parts),
        _deposit_halo(model, parts),
        _gather(parts),
        _advance(parts),
        _finish(model, parts, [a.name for a in numbers]),
    ]
    frame = Path(__file__).with_name("sweep.h").read_text()
    return "\n".join([*lines, *functions, frame])


class Parts:
    """Populations by the plane they go to, and the sums that each part adds to a cell.

    A cell's sums are 1, x, y, z, xx, xy, … over its populations, each the product of components
    of c_i, named by the axes. A part's own sums are those of the axes within the plane.
    """

    def __init__(self, lattice):
        self.lattice = lattice
        axes = "xyz"[: lattice.D]
        self.sums = ["", *axes, *(axes[a] + axes[b] for a, b in moments.pairs(lattice.D))]
        self.across = axes[-1]
        inside = [i for i in range(lattice.Q) if lattice.offset(i)[1:] != (0, 0)]
        self.moving = {i: k for k, i in enumerate(inside)}

    def weight(self, i: int, axes: str) -> int:
        """The product of the components of c_i along these axes."""
        product = 1
        for axis in axes:
            product *= self.lattice.c[i]["xyz".index(axis)]
        return product

    def part(self, step: int) -> list[int]:
        """Directions that step so many planes up."""
        return [i for i in range(self.lattice.Q) if self.lattice.offset(i)[0] == step]

    def in_plane(self, step: int) -> list[str]:
        """The sums within the plane that do not vanish in this part."""
        wanted = [axes for axes in self.sums if self.across not in axes]
        return [axes for axes in wanted if any(self.weight(i, axes) for i in self.part(step))]

    def add(self, step: int, source: str, target) -> list[str]:
        """C lines: for each in-plane sum of a part `target(axes)` gets the sum of `source`[i]."""
        lines, done, own = [], set(), self.part(step)
        plane = self.lattice.D - 1
        pairs = []
        for i in own:
            back = tuple(-c if k < plane else c for k, c in enumerate(self.lattice.c[i]))
            j = self.lattice.c.index(back)
            if i in done or i == j:
                continue
            done |= {i, j}
            pairs.append((i, j))
            lines.append(f"const real s_{i} = {source}[{i}] + {source}[{j}];")
            if self.lattice.c[i][:plane] != (0,) * plane:
                lines.append(f"const real d_{i} = {source}[{i}] - {source}[{j}];")
        still = [i for i in own if self.lattice.c[i][:plane] == (0,) * plane]
        for axes in self.in_plane(step):
            terms = [f"{source}[{i}]" for i in still] if not axes else []
            kind = "d" if len(axes) == 1 else "s"
            for i, _ in pairs:
                weight = self.weight(i, axes)
                terms += [f"{'-' if weight < 0 else ''}{kind}_{i}"] if weight else []
            lines.append(f"const real {target(axes)} = {_chain(terms)};")
        return lines


def _chain(terms: list[str]) -> str:
    """a + b - c …, from left to right."""
    return " + ".join(terms).replace("+ -", "- ")


def _function(head: str, lines: list[str]) -> str:
    return f"INLINE void {head}\n{{\n" + "\n".join(f"  {line}" for line in lines) + "\n}"


def _populations(model: Model, load: str, wanted: list[int]) -> list[str]:
    """C lines that load the moments of a cell and give its populations `wanted` the names f_i.

    The lines of a population are the same whichever others are wanted, so its bits are, too.
    """
    lattice, D = model.lattice, model.lattice.D
    axes, names = "xyz"[:D], moments.stored_names(D)
    lines = [f"const real {name} = {load.format(k)};" for k, name in enumerate(names)]
    lines.append(f"const real rho = {c_text(model.rest(symbol('density')))};")
    lines += [f"const real j_{a} = rho * u_{a};" for a in axes]
    lines += [
        f"const real m_{axes[a]}{axes[b]} = fma(j_{axes[a]}, u_{axes[b]}, a_{axes[a]}{axes[b]});"
        for a, b in moments.pairs(D)
    ]
    cs2, trace = lattice.cs2, _chain([f"m_{a}{a}" for a in axes])
    lines.append(f"const real base = fma({_number(-1 / (2 * cs2))}, {trace}, density);")
    for i in wanted:
        lines += _population(lattice, i)
    return lines


def _population(lattice, i: int) -> list[str]:
    """w_i (density - tr m / (2 cs2) + c_i c_i : m / (2 cs4) + c_i.j / cs2)."""
    axes, w, c, cs2 = "xyz", lattice.w[i], lattice.c[i], lattice.cs2
    forward = c if c >= tuple(-a for a in c) else tuple(-a for a in c)
    second = [f"m_{axes[a]}{axes[a]}" for a in range(lattice.D) if c[a]]
    for a, b in moments.pairs(lattice.D):
        if a != b and c[a] * c[b]:
            sign = "-" if c[a] * c[b] < 0 else ""
            second.append(f"{sign}R(2) * m_{axes[a]}{axes[b]}")
    if not second:
        return [f"const real f_{i} = {_number(w)} * base;"]
    first = [f"{'-' if forward[a] < 0 else ''}j_{axes[a]}" for a in range(lattice.D) if forward[a]]
    sign = 1 if forward == c else -1
    even = f"fma({_number(1 / (2 * cs2**2))}, {_chain(second)}, base)"
    return [
        f"const real f_{i} = fma({_number(sign * w / cs2)}, {_chain(first)}, {_number(w)} * {even});"
    ]


def _number(value) -> str:
    return c_text(sympify(value))


def _rebuild(model: Model) -> str:
    Q = model.lattice.Q
    lines = _populations(model, "LOAD(values, {} * step)", list(range(Q)))
    lines += [f"f[{i}] = f_{i};" for i in range(Q)]
    return _function("rebuild(const store* values, int step, real* f)", lines)


def _deposit(parts: Parts) -> str:
    lines = [f"to[{k} * TILE_VALUES] = f[{i}];" for i, k in parts.moving.items()]
    return _function("deposit(real* to, const real* f)", lines)


def _deposit_halo(model: Model, parts: Parts) -> str:
    """A cell beside the tile leaves what moves into it; way 0 lies below in rows, 2 in x."""
    lines = []
    for way, (axis, sign) in enumerate(WAYS):
        wanted = [i for i in parts.moving if model.lattice.offset(i)[axis] == sign]
        block = _populations(model, "LOAD(values, {} * step)", wanted)
        block += [f"to[{parts.moving[i]} * TILE_VALUES] = f_{i};" for i in wanted]
        if wanted:
            lines += [f"if (way == {way}) {{", *(f"  {line}" for line in block), "}"]
    return _function("deposit_halo(int way, real* to, const store* values, int step)", lines)


def _gather(parts: Parts) -> str:
    lines = []
    for i, k in parts.moving.items():
        _, row, x = parts.lattice.offset(i)
        lines.append(f"f[{i}] = from[{k} * TILE_VALUES - ({row} * (TX + 2) + {x})];")
    return _function("gather(const real* from, real* f)", lines)


def _advance(parts: Parts) -> str:
    """sums of the next cell = what rose into it + what moves in its plane; keep what rises."""
    lines = parts.add(0, "f", lambda axes: f"mid_{axes}")
    middle, rising = parts.in_plane(0), parts.in_plane(1)
    for k, axes in enumerate(parts.sums):
        within = axes.replace(parts.across, "")
        terms = [f"rising[{rising.index(within)}]"] if within in rising else []
        terms += [f"mid_{axes}"] if axes in middle else []
        lines.append(f"current[{k}] = {_chain(terms) or 'R(0)'};")
    up = parts.add(1, "f", lambda axes: f"up_{axes}")
    up += [f"rising[{k}] = up_{axes};" for k, axes in enumerate(rising)]
    return _function("advance(real* current, real* rising, const real* f)",
                     [*lines, "{", *(f"  {line}" for line in up), "}"])  # fmt: skip


def _finish(model: Model, parts: Parts, numbers: list[str]) -> str:
    """The last part arrives: sums -> moments -> collision -> what is stored."""
    down = parts.in_plane(-1)
    lines = parts.add(-1, "f", lambda axes: f"down_{axes}")
    for k, axes in enumerate(parts.sums):
        within, times = axes.replace(parts.across, ""), axes.count(parts.across)
        term = f" {'-' if times == 1 else '+'} down_{within}" if within in down else ""
        lines.append(f"const real sum_{axes} = current[{k}]{term};")
    lines += _collision(model)
    declared = "".join(f", real {name}" for name in numbers)
    head = f"finish(store* out, int f_slot, const real* current, const real* f, real{declared})"
    return _function(head, lines)


def _collision(model: Model) -> list[str]:
    """density, j and second moments -> those stored of what leaves, as the collision has it."""
    lattice, D = model.lattice, model.lattice.D
    axes, pairs = "xyz"[:D], moments.pairs(D)
    lines = [
        "const real density = sum_;",
        f"const real rho = {c_text(model.rest(symbol('density')))};",
    ]
    lines.append("const real inverse = R(1) / rho;")
    for a in axes:
        force = f"fma(R(0.5), force_{a}, sum_{a})" if model.forcing else f"sum_{a}"
        lines.append(f"const real u_{a} = {force} * inverse;")
    for a, b in pairs:
        name = axes[a] + axes[b]
        second = f"fma({_number(-lattice.cs2)}, density, sum_{name})" if a == b else f"sum_{name}"
        lines.append(f"const real a_{name} = fma(-(rho * u_{axes[a]}), u_{axes[b]}, {second});")
    for k, value in enumerate(_leaving(model)):
        address = f"{k} * f_slot" if k else "0"
        lines.append(f"STORE(out, {address}, {fused(value)});")
    return lines


def _leaving(model: Model) -> list:
    """What is stored of the populations that leave, in density, rho, u, a and the numbers.

    `a` are the second moments less rho u u. Exact, for collisions that know no other moment.
    """
    lattice, D = model.lattice, model.lattice.D
    axes, pairs = "xyz"[:D], moments.pairs(D)
    density, rho, inverse = symbol("density"), symbol("rho"), symbol("inverse")
    u = [symbol(f"u_{a}") for a in axes]
    force = [symbol(f"force_{a}") if model.forcing else 0 for a in axes]
    momentum = [rho * v - F / sympify(2) for v, F in zip(u, force, strict=True)]
    second = [symbol(f"a_{axes[a]}{axes[b]}") + rho * u[a] * u[b] for a, b in pairs]
    f = moments.populations(lattice, density, momentum, second)
    source = model.forcing.source(lattice, u, force) if model.forcing else None
    rates = {name: symbol(name) for name in model.collision.rates(1.0, lattice)}
    left = model.collision.collide(lattice, f, density, rho, u, source, rates)
    density, momentum, second = moments.moments_of(lattice, left)
    stored = moments.compress(expand(density), [expand(j) for j in momentum],
                              [expand(m) for m in second], lambda _: rho)  # fmt: skip
    return [_tidy(expand(value).subs(1 / rho, inverse)) for value in stored]


def _tidy(expression):
    """Common factors taken out, as in (1 - omega) a."""
    return factor_terms(expression)


def fused(expression) -> str:
    """C text with each product that is added written as an fma, from left to right."""
    if isinstance(expression, Add):
        terms = expression.as_ordered_terms()
        text = fused(terms[0])
        for term in terms[1:]:
            if isinstance(term, Mul):
                first, rest = term.args[0], Mul(*term.args[1:])
                text = f"fma({fused(first)}, {fused(rest)}, {text})"
            else:
                text = f"({text} + {fused(term)})"
        return text
    if isinstance(expression, Mul):
        return " * ".join(
            f"({fused(a)})" if isinstance(a, Add) else fused(a) for a in expression.args
        )
    return c_text(expression)

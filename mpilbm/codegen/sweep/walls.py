"""Half-way walls in the moment sweep: the populations that they return, as C functions."""

from sympy import sympify

from mpilbm.codegen.printer import c_text
from mpilbm.codegen.sweep.cell import chain, function
from mpilbm.codegen.sweep.message_text import outgoing
from mpilbm.codegen.sweep.messages import Messages, by_shape
from mpilbm.codegen.sweep.parts import Parts
from mpilbm.physics.lattices import Lattice

# Faces of the box in the order of box_walls: (axis, sign) of the offsets (plane, row, x) of the
# populations that come in through a face.
FACES = ((2, 1), (2, -1), (1, 1), (1, -1), (0, 1), (0, -1))


def bounce(parts: Parts) -> str:
    """C function: add the populations f_opp + 2 w_i c_i . u / cs2 that half-way walls return.

    A link that crosses several walls belongs to the last of them. An outgoing population is in the
    messages or, if it stays in its thread, in f.
    """
    return by_shape(parts.lattice, lambda messages: _bounce(parts, messages))


def _bounce(parts: Parts, messages: Messages) -> str:
    lattice = parts.lattice
    lines = ["real sums[SUMS] = {};"]
    for face in range(len(FACES)):
        entering = _entering(lattice, face)
        if not entering:
            continue
        lines.append(f"if (faces & {1 << face}) {{")
        lines.append(f"  const int later = faces & walls.later[{face}];")
        for i in entering:
            others = sum(
                1 << k for k in range(len(FACES)) if k != face and i in _entering(lattice, k)
            )
            lines.append(f"  const bool own_{i} = !(later & {others});")
            lines.append(f"  real f_{i} = own_{i} ? {outgoing(messages, lattice.opp[i])} : R(0);")
        lines += [f"  {line}" for line in _moved(lattice, face, entering)]
        terms = {axes: _signed(parts, entering, axes) for axes in parts.sums}
        known: dict[tuple[str, ...], str] = {}
        for k, one in enumerate(terms.values()):
            if one and one not in known:
                known[one] = f"part_{k}"
                lines.append(f"  const real part_{k} = {chain(list(one))};")
        lines += [f"  sums[{k}] += {known[one]};" for k, one in enumerate(terms.values()) if one]
        lines.append("}")
    lines.append("for (int s = 0; s < SUMS; s++) to[s] += sums[s];")
    values = "const real* messages, int at, const real (*f)[Q], int c, real* to"
    return function(f"bounce(int faces, const Walls& walls, {values})", lines)


def _moved(lattice: Lattice, face: int, entering: list[int]) -> list[str]:
    """C lines that add the effect of a wall's motion."""
    axes = "xyz"[: lattice.D]
    lines = [f"if (walls.moving & {1 << face}) {{"]
    lines += [f"  const real u_{a} = (real)walls.u[{face}][{k}] * (R(1) / UNIT);"
              for k, a in enumerate(axes)]  # fmt: skip
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
        gone = " ".join(f"f[{i}] = R(0);" for i in _entering(parts.lattice, face))
        lines += [f"if (faces & {1 << face}) {{ {gone} }}"] if gone else []
    return function("clear(int faces, real* f)", lines)


def _entering(lattice: Lattice, face: int) -> list[int]:
    """Directions that come in through a face."""
    axis, sign = FACES[face]
    return [i for i in range(lattice.Q) if lattice.offset(i)[axis] == sign]

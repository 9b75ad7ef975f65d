"""Faces of the box at which the fluid is mirrored, in the moment sweep: free slip without lists.

    f_i(x, t+1) = f_out_r(x - c_i + m),  c_r = c_i - 2 m

m is the component of c_i along the normals of the mirrors that the link crosses. Population r of
the cell x - c_i + m moves to x - m, beyond the face: to the place whose mirror image is x.

    beyond x or rows   the message with population r for the cell x - m replaces the one that
                       arrives in x along c_i
    across planes      in the planes at a mirror the populations that leave are added to the sums,
                       as the ones that enter; those within the plane have arrived before

A link that also crosses a wall belongs to the wall: its population is zero here.
"""

import re
from collections.abc import Collection, Sequence

from mpilbm.codegen.sweep.cell import Parts, function
from mpilbm.codegen.sweep.messages import Messages, by_shape
from mpilbm.physics.lattices import Lattice

# Faces of the box in the order of box_walls: (axis, sign) of the offsets (plane, row, x) of the
# populations that come in through a face.
FACES = ((2, 1), (2, -1), (1, 1), (1, -1), (0, 1), (0, -1))
SIDES = 4  # the faces of FACES within a plane
OPTIONAL = re.compile(r" WHERE_MIRRORS\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")


def entering_through(lattice: Lattice, face: int) -> list[int]:
    """Directions that come in through a face."""
    axis, sign = FACES[face]
    return [i for i in range(lattice.Q) if lattice.offset(i)[axis] == sign]


def clear(parts: Parts, mirrors: Collection[int]) -> str:
    """C function: set populations to zero that would come through walls along rows and x; read
    those that come through mirrors from messages.
    """
    return by_shape(parts.lattice, lambda messages: _clear(messages, mirrors))


def _clear(messages: Messages, mirrors: Collection[int]) -> str:
    lattice, lines = messages.lattice, []
    for i in range(lattice.Q):
        through = [face for face in range(SIDES) if i in entering_through(lattice, face)]
        cases = [(face,) for face in through] + ([tuple(through)] if len(through) > 1 else [])
        found = f"f[{i}]"
        for faces in cases:
            bits = sum(1 << face for face in faces)
            own = _image(messages, i, faces) if set(faces) <= set(mirrors) else "R(0)"
            found = f"(faces & {bits}) == {bits} ? {own} : {found}"
        lines += [f"f[{i}] = {found};"] if through else []
    return function("clear(int faces, real* f, const real* messages, int at, int c)", lines)


def _image(messages: Messages, i: int, faces: tuple[int, ...]) -> str:
    """C text of the population that a thread has sent beyond mirrors, whose image enters along c_i
    in cell c.
    """
    offset, beyond = list(messages.lattice.offset(i)), [0, 0, 0]
    for axis, sign in (FACES[face] for face in faces):
        offset[axis], beyond[axis] = -sign, -sign
    r = direction(messages.lattice, offset)
    sizes = 1, messages.rows, messages.cells
    texts: dict[int, str] = {}
    for cell in range(messages.count):
        place = 0, *divmod(cell, messages.cells)
        last = [(size - 1 if side > 0 else 0) for size, side in zip(sizes, beyond, strict=True)]
        if any(side and at != end for side, at, end in zip(beyond, place, last, strict=True)):
            continue  # it touches none of these faces
        there = [at + b - o for at, b, o in zip(place, beyond, offset, strict=True)]
        (line, row), (pair, x) = divmod(there[1], messages.rows), divmod(there[2], messages.cells)
        piece, k = messages.piece(r, row * messages.cells + x)
        at = piece.place(f"(at + {line} * SENDERS + {pair})", True)
        texts[cell] = f"messages[{at} + {k}]"
    *others, (_, text) = texts.items()
    return "(" + "".join(f"c == {cell} ? {other} : " for cell, other in others) + f"{text})"


def folded(parts: Parts, mirrors: Collection[int]) -> list[str]:
    """C lines that add the incoming populations of mirrors across planes to the sums `to`."""
    lattice, lines = parts.lattice, []
    for face in (face for face in range(SIDES, len(FACES)) if face in mirrors):
        step = FACES[face][1]
        lines += [f"if (faces & {1 << face}) {{", "  real image[Q];"]
        for i in entering_through(lattice, face):
            r = direction(lattice, (-step, *lattice.offset(i)[1:]))
            lines.append(f"  image[{i}] = f[c][{r}];")
        lines += [f"  {line}" for line in parts.add(step, "image", "through_{}".format)]
        for k, axes in enumerate(parts.sums):
            within, times = axes.replace(parts.across, ""), axes.count(parts.across)
            if within in parts.in_plane(step):
                lines.append(f"  to[{k}] {'-' if step**times < 0 else '+'}= through_{within};")
        lines.append("}")
    return lines


def direction(lattice: Lattice, offset: Sequence[int]) -> int:
    """The direction with this offset (plane, row, x)."""
    return next(i for i in range(lattice.Q) if lattice.offset(i) == tuple(offset))

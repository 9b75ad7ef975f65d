"""The result of code generation: one kernel text and a description of each kernel."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from mpilbm.solids.body_links import CHUNK

OF = "_of_{}"  # suffix of the names of kernels and arrays of one of several coupled fluids

POINTS = "point_fields"  # role of the kernel of rho and u at listed cells
FORCE = "body_force"  # the array with the force in each cell
BODY_CELLS = "body_cells"  # role of the kernel of the forces on bodies that act in cells
WHOLE = "whole"  # the array of a slab, in kernels that copy cells to a window and back
SHARE = "solid_share"  # the array with the share of each cell that is solid, in units of 1 / 255
MOVED = "solid_body"  # the array with the number of the moving body in each cell, or 0
RESTING = "solid_at_rest"  # the array with the share of each cell in bodies at rest
DISTANCES = "distances"  # of grids from the surfaces of bodies, see solids/distance_field.py
MOTION = "motion"  # the array with the numbers of the moving bodies, see solids/moving_bodies.py
MOTIONS = "motions"  # the arrays `motion` of the steps ahead, one after another
CURSORS = "cursors"  # for each number of `motion`, which of these is the next one
NEXT = "next_motion"  # role of the kernel that copies the next of these to `motion`
MOVE = "move_bodies"  # role of the kernel that computes the shares of moving bodies
CLEAR = "clear_bodies"  # role of the kernel that leaves the shares of bodies at rest alone
# of passes of two steps: the arrays at the time between the steps
BETWEEN = {name: f"{name}_between" for name in (SHARE, MOVED, MOTION)}
MOVER = "mover"  # the number of a moving body, from 1
MOVED_CELLS = "moved_cells"  # role of the kernel of the forces on moving bodies
FREE_CELLS = "free_cells"  # role of the kernel of the force in each step on bodies that move freely

Phase = Literal["boundary", "collide", "copy", "other"]


@dataclass(frozen=True)
class Access:
    """One value of a field that a kernel reads or writes: its slot, at an offset (plane, row, x).

    `buffer` is the name of the field's grid ("f", "u"), the same for all arrays of the field.
    """

    buffer: str
    slot: int
    offset: tuple[int, int, int]


@dataclass(frozen=True)
class Argument:
    """A parameter of a kernel: a pointer ("store*", "real*", "int64*", …) or a number."""

    name: str
    type: str


@dataclass(frozen=True)
class Kernel:
    """A function of the kernel text.

    It loops over items (planes, entries or chunks), which threads compute at the same time: no item
    accesses what another one writes.

    over      what it loops over: "cells", "pairs", "rows", "columns", "entries" (of a boundary
              list), "chunks" (of such entries, to add values), "planes" (numbers of their rows),
              "nodes" or "node_rows"
    parity    the parity of the time steps in which it is used; None for all time steps
    fluid     number of the coupled fluid that it belongs to; None if it belongs to none or all
    phase     "boundary": supplies incoming populations, with the values of time t; "collide":
              computes a step, with the values of time t + 1; "copy": copies the state of cells, for
              checkpoints; "other": initial state, diagnostics
    role      its name without parity and fluid
    optional  whether only some runs use it
    exchanges its CUDA text, compiled with -DJOINT, exchanges edge planes, too (prelude_joint.h)
    """

    name: str
    over: str
    arguments: tuple[Argument, ...]
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    parity: int | None = None
    fluid: int | None = None
    phase: Phase = "other"
    role: str = ""
    optional: bool = False
    exchanges: bool = False

    @property
    def over_links(self) -> bool:
        """Whether it loops over entries of boundary lists."""
        return self.over in ("entries", "chunks")

    def item_accesses(self, numbers: Mapping[str, int]) -> int:
        """About how many values an item reads and writes; `numbers`: its whole-number arguments."""
        cells = numbers.get("node_most") or numbers.get("rows", 1) * numbers.get("nx", 1)
        if self.over_links:
            cells = CHUNK if self.over == "chunks" else 1
        return cells * max(1, len(self.reads) + len(self.writes))


@dataclass(frozen=True)
class SweepSizes:
    """Sizes of the moment sweep.

    values    stored values of a cell
    wide      of these, the values in the widest format, which come first; 0 with one format
    crossing  for each shape of a thread (rows, cells, levels, more): half of the populations of a
              thread that move to other threads within planes, and those of them that cross rows
    reach     rows on each side of a tile that it reads
    """

    values: int
    wide: int
    crossing: tuple[tuple[int, int, int, int], ...]
    reach: int


@dataclass(frozen=True)
class Program:
    """Kernel text, valid as C11 and as CUDA, with descriptions of its kernels.

    head     the definitions that all kernels share
    bodies   the text of each kernel, by its name
    storage  the format of the memory units, of type `store` in the text
    wide     the widest format of stored values, if it is another one; see layouts/formats.py
    sweep    CUDA text of a kernel that replaces `collide_stream_0` on GPUs, with its sizes, or ""
    """

    head: str
    bodies: dict[str, str]
    kernels: dict[str, Kernel]
    compute: str
    storage: str
    sweep: str = ""
    sweep_sizes: SweepSizes | None = None
    wide: str = ""

    @property
    def widest(self) -> str:
        """The widest format of stored values, of type `wide` in the text."""
        return self.wide or self.storage

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join([self.head, *self.bodies.values()])

    def wanted(self, roles: Collection[str]) -> list[str]:
        """The names of the kernels that every run uses, and of optional ones with these roles."""
        return [name for name, k in self.kernels.items() if not k.optional or k.role in roles]

    def to_json(self) -> str:
        """The program as JSON text, for the cache and for the broadcast among ranks."""
        return _adapter().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "Program":
        """The program of a JSON text that `to_json` returned."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Program]:
    return TypeAdapter(Program)

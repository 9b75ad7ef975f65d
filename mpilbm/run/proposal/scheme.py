"""The rules of a proposal: time step, cells, collision and walls, from a few numbers of the flow.

The time step is the longest one with

    Ma = u / cs <= 0.1,   tau <= 1,

that is u = min(0.1 cs, cs2 u_SI cell / (2 nu_SI)) cells per step for the largest given speed u_SI.
The walls are resolved if y+ of the first cell is at most 5. Then a flow needs no closure, and walls
at their exact distance are accurate. Otherwise it gets a closure, and bodies and plane walls a wall
model. Passages with other walls are partially saturated cells: stable and as fast as plain flow.
"""

from dataclasses import dataclass
from math import ceil, floor, inf, log10, sqrt
from typing import Any, Literal

from mpilbm.physics.wall_laws import VISCOUS
from mpilbm.run.preflight.inspection import first_y_plus_of_pipe
from mpilbm.solids.surfaces.findings import COARSE, y_plus

MACH, TAU = 0.1, 1.0
LATTICE = "D3Q27"
# Along the body or across the bore. With 32 and 20 cells the validation has errors of some percent
# in laminar flow. Above 160 cells coarse walls gain little: from 128 to 192 the drag of the Ahmed
# body falls by 6 % at 5 times the work. A wall model was measured with 20 cells across a channel.
LEAST, MOST, MODELLED = {"external": 32, "internal": 20}, 160, 40
MODEL: dict[str, Any] = {"name": "wall_model", "law": "spalding"}
# Where the walls are not resolved. With wall models `qr` was worse: the drag of the Ahmed body was
# 0.23 in place of 0.27 (measured 0.30), and in a duct it carried no momentum to the cells next to
# the walls, in which the flow turned back.
CLOSURE = {"closure": {"name": "smagorinsky"}}

Kind = Literal["external", "internal"]
Walls = Literal["resolved", "modelled", "coarse"]


@dataclass(frozen=True)
class Resolution:
    """How finely cells resolve a 3D flow past a body (external) or through a passage (internal).

    reynolds  of the body's length and the speed of the stream; of the bore and the mean speed
    cells     along this length
    flat      whether all walls are faces of the box
    narrow    cells along the shortest side of a body, which limit the accuracy, too
    modelled  whether walls that are not resolved have a wall model; None: as is proposed
    """

    kind: Kind
    reynolds: float
    cells: float
    flat: bool = False
    narrow: float = inf
    modelled: bool | None = None

    @property
    def first(self) -> float:
        """y+ of the first cell: of a flat plate, or of a smooth pipe."""
        law = y_plus if self.kind == "external" else first_y_plus_of_pipe
        return law(1.0, self.cells, self.cells / self.reynolds)

    @property
    def walls(self) -> Walls:
        """Whether the cells resolve the viscous sublayer, or a wall model replaces it."""
        if self.first <= VISCOUS:
            return "resolved"
        proposed = self.flat or self.kind == "external"
        modelled = proposed if self.modelled is None else self.modelled
        return "modelled" if modelled else "coarse"

    @property
    def needed(self) -> int:
        """The cells along the length that would resolve the viscous sublayer."""
        return ceil(self.first * self.cells / VISCOUS)


def cells_along(kind: Kind, reynolds: float, flat: bool = False, slender: float = 1) -> int:
    """The cells that are proposed: those that resolve the walls, from LEAST to MOST.

    A body that is `slender` times as long as its shortest side gets COARSE cells across that side.
    `flat` walls in a passage that MOST cells do not resolve get a wall model and MODELLED cells.
    """
    finest = Resolution(kind, reynolds, MOST, flat)
    if finest.walls == "modelled" and kind == "internal":
        return MODELLED
    return min(max(finest.needed, LEAST[kind], ceil(COARSE * slender)), MOST)


def longest_step(cell: float, fastest: float, nu: float, cs2: float) -> float:
    """The duration of a step in s, with three digits; cell, fastest and nu in SI."""
    u = min(MACH * sqrt(cs2), cs2 * (TAU - 0.5) * fastest * cell / nu)
    return rounded_down(u * cell / fastest)


def rounded_down(number: float) -> float:
    """A positive number with three digits."""
    unit = 10.0 ** (floor(log10(number)) - 2)
    return float(f"{floor(number / unit * (1 + 1e-12)) * unit:.3g}")


def collision(flow: Resolution) -> dict[str, Any]:
    """The table [collision]: sound fades, and with a closure it is stable next to coarse walls.

    On LATTICE it equals `central_moment`, by which the stability map judges it.
    """
    closure = {} if flow.walls == "resolved" else CLOSURE
    return {"name": "recursive_regularized", "omega_bulk": 1} | closure


def face_wall(flow: Resolution) -> dict[str, Any]:
    """The boundary of walls at faces of the box."""
    return MODEL if flow.flat and flow.walls == "modelled" else {"name": "bounce_back"}


def body_wall(flow: Resolution) -> dict[str, Any]:
    """The boundary of a body."""
    if flow.walls == "resolved":
        return {"name": "interpolated"} | (
            {"conserve_mass": True} if flow.kind == "internal" else {}
        )
    return MODEL if flow.walls == "modelled" else {"name": "partially_saturated"}


def layout(flow: Resolution) -> dict[str, Any]:
    """The table [layout]; empty where `auto` takes the fastest one.

    With partially saturated cells `moments` differs slightly from other layouts, so that `auto`
    takes another one. On GPUs `moments` is nearly twice as fast and needs 40 % of the memory.
    """
    return {"name": "moments"} if body_wall(flow)["name"] == "partially_saturated" else {}

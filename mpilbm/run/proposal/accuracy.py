"""The expected accuracy of a 3D flow: that of the most similar flow of the validation."""

from dataclasses import dataclass, replace
from math import inf, log

from mpilbm.core.units import counted
from mpilbm.run.preflight.report import Line
from mpilbm.run.proposal.scheme import Kind, Resolution, Walls

WRONG = 0.15  # relative deviation above which a result cannot be trusted


@dataclass(frozen=True)
class Row:
    """A measured flow of the manual's chapter Validation; `section` is the heading there.

    Flows from `least` to `most` behave alike: creeping, steady, turbulent. `slender`: length of the
    body over its shortest side. `unlike`: a flow of the same kind that deviates more, in words.
    """

    kind: Kind
    walls: Walls
    flow: str
    reynolds: float
    least: float
    most: float
    cells: int
    quantity: str
    found: float
    reference: float
    section: str
    slender: float = 1
    unlike: str = ""

    @property
    def ratio(self) -> float:
        """Found over reference."""
        return self.found / self.reference

    @property
    def text(self) -> str:
        """The row in words, with its place in the manual."""
        return (
            f"{self.flow}, Re {self.reynolds:g}, {counted(self.cells, 'cell')}: {self.quantity} "
            f"{self.found:g}, reference {self.reference:g} (validation, {self.section})"
        )


ROUND = (
    "where no edges fix the separation it may be wrong: a sphere of 40 cells at Re 1e+06 had c_d "
    "0.03, measured 0.1 to 0.2"
)
SPHERE, MESH, ELBOW = "Sphere in a pipe", "Surface meshes", "Pipe elbow"
DUCT, FREE = "Duct with a wall model", "Sphere in a free stream"
AHMED = Row(
    "external", "coarse", "Ahmed body", 2.78e6, 3e5, inf, 0, "c_d", 0, 0.299, MESH, slender=3.63
)
DRAG = (40, 0.804), (64, 0.685), (128, 0.607), (192, 0.572)  # of it without a wall model
ROWS = (
    Row("external", "resolved", "sphere in a pipe", 1, 0, 3, 61, "c_d", 142.7, 144.48, SPHERE),
    Row("external", "resolved", "sphere in a pipe", 10, 3, 30, 61, "c_d", 14.55, 14.74, SPHERE),
    Row("external", "resolved", "sphere in a pipe", 100, 30, 140, 61, "c_d", 2.331, 2.380, SPHERE),
    Row("external", "resolved", "sphere in a pipe", 200, 140, 250, 61, "c_d", 1.641, 1.679, SPHERE),
    *(replace(AHMED, cells=n, found=c_d) for n, c_d in DRAG),
    *(replace(AHMED, walls="modelled", cells=n, found=0.275, unlike=ROUND) for n in (80, 160)),
    Row("internal", "resolved", "pipe", 99.7, 0, 300, 16, "pressure drop", 1.053, 1.0, "Pipe"),
    Row("internal", "resolved", "pipe", 997, 300, 2000, 25, "mean velocity", 0.952, 1.0, "Pipe"),
    Row("internal", "modelled", "duct", 4e4, 1e4, inf, 20, "pressure drop", 92, 68, DUCT),
    Row("internal", "coarse", "pipe elbow", 5e4, 1e4, inf, 10, "pressure drop", 1.9, 0.34, ELBOW),
    Row("internal", "coarse", "pipe elbow", 5e4, 1e4, inf, 14, "pressure drop", 1.36, 0.34, ELBOW),
)


@dataclass(frozen=True)
class SidesOfBox:
    """A sphere in a box whose sides slip, as it is proposed, against one in free fluid."""

    reynolds: float
    blockage: float
    found: float
    free: float

    @property
    def text(self) -> str:
        """The drag of both, with its place in the manual."""
        return (
            f"at Re {self.reynolds:g} a box of blockage {self.blockage:.1%} gave a sphere c_d "
            f"{self.found:g}, in free fluid {self.free:g} (validation, {FREE})"
        )


BOXES = (SidesOfBox(1, 0.049, 35.0, 27.2), SidesOfBox(100, 0.049, 1.23, 1.09))


def nearest(flow: Resolution) -> Row:
    """The row with such walls at the nearest Reynolds number, and the nearest number of cells."""
    rows = (row for row in ROWS if (row.kind, row.walls) == (flow.kind, flow.walls))

    def apart(row: Row) -> tuple[float, float]:
        return abs(log(row.reynolds / flow.reynolds)), abs(log(row.cells / flow.cells))

    return min(rows, key=apart)


def wall_line(flow: Resolution) -> Line:
    """y+ of the first cell, and what resolves or models the walls."""
    value = f"y+ about {float(f'{flow.first:.2g}'):g}"
    if flow.walls == "resolved":
        return Line("walls", value, "resolved", "good")
    if flow.walls == "modelled" and flow.kind == "internal":
        return Line("walls", value, "not resolved; a wall law gives the stress", "good")
    if flow.walls == "modelled":
        text = "not resolved; a wall law gives the stress, at curved walls up to 1.6 times it"
        return Line("walls", value, text, "fair")
    text = (
        "not resolved, and without a wall model; "
        f"{flow.needed:,} cells along the length would resolve them"
    )
    return Line("walls", value, text, "poor")


def accuracy_line(flow: Resolution) -> Line:
    """The deviation that the most similar flow had, and whether to trust the result."""
    row = nearest(flow)
    similar = f"the most similar flow: {row.text}"
    if not row.least <= flow.reynolds <= row.most:
        value, level = "not measured at this Reynolds number", "fair"
        if flow.walls == "coarse":
            value, level = f"not trustworthy: {value}, and the walls are not resolved", "poor"
        return Line("accuracy", value, similar, level)
    if abs(row.ratio - 1) > WRONG:
        wrong = (
            f"{row.ratio:.2g} times too large"
            if row.ratio > 1
            else (f"{row.ratio:.2g} times the reference")
        )
        value = f"not trustworthy: {row.quantity} was {wrong}"
        return Line("accuracy", value, similar, "poor")
    across = min(flow.cells, flow.narrow * row.slender)
    if across < row.cells / 2:
        return Line("accuracy", "not measured with so few cells", similar, "fair")
    coarser = max(1.0, row.cells / across)  # errors of walls grow at least so
    value = f"about {abs(row.ratio - 1) * coarser:.1%}"
    if row.unlike:
        value += " for a body with edges, such as a car"
        return Line("accuracy", value, f"{similar}; {row.unlike}", "fair")
    if flow.kind == "external":
        value += ", apart from the effect of the sides of the box"
        box = min(BOXES, key=lambda each: abs(log(each.reynolds / flow.reynolds)))
        return Line("accuracy", value, f"{similar}; {box.text}", "good")
    return Line("accuracy", value, similar, "good")

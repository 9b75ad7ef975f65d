"""What `check` and the start of a run report about a surface in its box."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import floor, prod, sqrt
from typing import NamedTuple

from mpilbm.core.units import counted
from mpilbm.model.box import Domain
from mpilbm.model.case import Case
from mpilbm.model.findings import NOTE, SERIOUS, WARNING, Finding
from mpilbm.physics.wall_laws import VISCOUS
from mpilbm.solids.periodic_images import LONGEST
from mpilbm.solids.shapes import Corners, Flow
from mpilbm.solids.surfaces.examine import THIN, Parts, Place

# share of sheets among the parts met by lines above which the body itself is a sheet
MOSTLY = 0.1
COARSE = 8  # cells across the smallest side
BLOCKED = 0.05  # share of the cross-section above which results usually need a correction
BESIDE = 0.5  # cells from a free-slip face to a sheet
TURBULENT = 5e5  # Reynolds number of transition at a flat plate
MOST = 2  # boxes; a body that is longer along all axes is refused
METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}

Area = Callable[[int, Domain], float | None]
Remark = tuple[str, str]  # severity and message of a Finding


@dataclass(frozen=True)
class Body:
    """A surface in the box.

    where     key of the shape
    sides     corners of the bounding box
    inverted  whether the fluid is inside
    repaired  a sentence on the repair of the surface, or an empty one
    """

    where: str
    sides: Corners
    inverted: bool
    repaired: str

    @property
    def size(self) -> tuple[float, ...]:
        """The lengths of the sides."""
        return tuple(b - a for a, b in zip(*self.sides, strict=True))


class Given(NamedTuple):
    """The size in the case; one of the three is set."""

    scale: float | None
    length: float | None
    unit: str | None


def of_surface(
    case: Case, body: Body, parts: Parts | None, area: Area, flow: Flow
) -> list[Finding]:
    """Return the findings about a surface; area: Shape.frontal_area; parts: None with `thin`."""
    remarks = [(NOTE, body.repaired)] if body.repaired else []
    remarks += _beyond_box(case.domain, body, sheet=parts is None)
    remarks += _of_parts(parts) if parts else []
    text = f"the sides of the bounding box are {_by(body.size)} cells"
    if parts is None or min(body.size) >= COARSE:
        remarks.append((NOTE, text))
    else:
        fewer = f"the smallest has fewer than {COARSE} cells; refine the box"
        remarks.append((WARNING, f"{text}; {fewer}"))
    if not body.inverted and flow.axis is not None:
        remarks.append(_blockage(case, area, flow.axis))
        length = body.size[flow.axis]
        if flow.speed and length:
            nu = min(fluid.viscosity for fluid in case.fluids)
            remarks.append(_first_cell(flow.speed, length, nu))
    return [Finding(severity, body.where, message) for severity, message in remarks]


def sheets(parts: Parts) -> list[str]:
    """A line if the body is mostly a sheet thinner than a cell."""
    if parts.sheets.count <= MOSTLY * parts.pieces:
        return []
    return [
        f"is a sheet: {_sheets(parts)}; allowed: bodies at least one cell thick; refine the box, "
        "give the sheet a thickness of two cells or more, or set thin = true, which makes its "
        "surface a wall between fluid cells"
    ]


def refused(case: Case, sides: Corners) -> list[str]:
    """A line for each reason why a surface with `thin` cannot be used; sides: its corners."""
    found = []
    if not case.single_fluid:
        found.append(
            "has thin = true with coupled fluids, whose forces act through the sheet; allowed: a "
            "single fluid; remove thin and thicken the sheet to two cells or more"
        )
    for face in (f for each in case.boundaries if each.mirrors for f in each.where):
        axis = "xyz".index(face[0])
        low, high = sides[0][axis], sides[1][axis]
        beyond = low < BESIDE if face[1] == "-" else high > case.domain.size[axis] - BESIDE
        if beyond:
            found.append(
                f"has thin = true and reaches from {'xyz'[axis]} = {low:.4g} to {high:.4g}, to the "
                f"free-slip face '{face}', whose mirrored links would pass it; allowed: {BESIDE} "
                "cells or more from the face; move it, or simulate both halves of the flow"
            )
    return found


def too_large(sides: Sequence[float], box: Sequence[int], given: Given) -> str:
    """Why a body with these sides is too large for a box, with a size that would fit; "" if not."""
    if not all(side > MOST * n for side, n in zip(sides, box, strict=True)):
        return ""
    return (
        f"has sides of {_by(sides)} cells in a box of {_by(box)}; allowed: a body at most twice as "
        f"long as the box along one axis or more; {_smaller(sides, box, given)}"
    )


def _smaller(sides: Sequence[float], box: Sequence[int], given: Given) -> str:
    """The size that would fit: with the largest unit, if this explains the size."""
    most = min(n / side for side, n in zip(sides, box, strict=True))
    if given.length:
        return f"length = {given.length * most:.3g} would fit"
    factors = {name: metres / METRES[given.unit or "m"] for name, metres in METRES.items()}
    name = max((k for k, f in factors.items() if f <= most), key=lambda k: factors[k], default="")
    if not name:
        return "check the size of the body in the file"
    cells = f"{_by([side * factors[name] for side in sides])} cells"
    if given.scale is None:
        return f"unit = '{name}' would give {cells}"
    scale = given.scale * factors[name]
    return f"scale = {scale:.6g}, for a file in {name} read as one in m, would give {cells}"


def _beyond_box(domain: Domain, body: Body, sheet: bool) -> Iterator[Remark]:
    """A body much longer than the box, or outside of it along a periodic axis."""
    ratios = [side / n for side, n in zip(body.size, domain.size, strict=True)]
    long = [axis for axis, ratio in zip("xyz", ratios, strict=False) if ratio > MOST]
    fits = min(ratios) <= 1
    if long and not (fits and sheet):
        yield (
            NOTE if fits else WARNING,
            f"its sides of {_by(body.size)} cells are more than twice as long as the box along "
            f"{', '.join(long)}; only the part in the box counts; compare the unit of the file "
            "with scale, length or unit",
        )
    each = zip("xyz", *body.sides, domain.size, domain.periodic, strict=False)
    for axis, a, b, n, periodic in each:
        if periodic and (b <= 0 or a >= n) and b - a <= LONGEST * n:
            moved = n * floor((a + b) / 2 / n)
            yield (
                WARNING,
                f"lies outside the box, from {axis} = {a:.4g} to {b:.4g}; the box of {n} cells is "
                f"periodic, so that the body appears from {axis} = {a - moved:.4g} to "
                f"{b - moved:.4g}; change `at` to place it there",
            )


def _of_parts(parts: Parts) -> Iterator[Remark]:
    """The orientation, overlapping parts, sheets and thin parts."""
    if parts.mixed:
        yield (
            NOTE,
            "the triangles have no common orientation; solid cells do not depend on it, but "
            "overlapping parts cannot be found; orient the normals to see them",
        )
    if parts.doubled.count:
        yield (
            SERIOUS,
            f"parts of the surface overlap or intersect: {counted(parts.doubled.count, 'cell')} "
            f"in an even number of parts, {_first(parts.doubled)}, are fluid; unite the parts in "
            "the program that made the file",
        )
    if parts.sheets.count:
        yield (
            SERIOUS,
            f"{_sheets(parts)}; the fluid passes there; set thin = true, refine the box, or "
            "thicken these parts",
        )
    thin = parts.thin.count - parts.sheets.count
    if thin > 0:
        yield (
            WARNING,
            f"thinner than {THIN} cells at {counted(thin, 'place')} of {parts.pieces:,}, "
            f"{_first(parts.thin)}; such parts are not resolved; refine the box",
        )


def _blockage(case: Case, area: Area, axis: int) -> Remark:
    """The frontal area, relative to the cross-section of the box."""
    front = area(axis, case.domain) or 0.0
    share = front / prod(n for k, n in enumerate(case.domain.size) if k != axis)
    what, unit = ("area", "cells^2") if case.dimensions == 3 else ("width", "cells")
    text = (
        f"the frontal {what} across {'xyz'[axis]} is {front:.5g} {unit}, {share:.2%} of the "
        "cross-section of the box"
    )
    if share <= BLOCKED:
        return NOTE, text
    return WARNING, (
        f"{text}; above {BLOCKED:.0%} the sides of the box change the forces; enlarge the box, or "
        "correct for the blockage"
    )


def _first_cell(speed: float, length: float, viscosity: float) -> Remark:
    """y+ of the first cell from the friction of a flat plate."""
    value = y_plus(speed, length, viscosity)
    text = (
        f"y+ of the first cell is about {float(f'{value:.2g}'):g}, as at a flat plate with the "
        f"Reynolds number {speed * length / viscosity:.3g}"
    )
    if value <= VISCOUS:
        return NOTE, text
    return WARNING, (
        f"{text}; above {VISCOUS} the viscous sublayer is not resolved, and friction and "
        "separation are inaccurate; refine the box or lower the Reynolds number"
    )


def y_plus(speed: float, length: float, viscosity: float) -> float:
    """Return y+ = u_tau y / nu of the first cell centre, y = 1/2, at a flat plate.

        u_tau = U sqrt(c_f / 2),  c_f = 0.664 / sqrt(Re) (laminar), 0.026 / Re^(1/7) (turbulent)

    with Re = U length / nu and the turbulent law from Re = 5e5. [White, Viscous Fluid Flow]
    """
    number = speed * length / viscosity
    friction = 0.664 / sqrt(number) if number < TURBULENT else 0.026 / number ** (1 / 7)
    return speed * sqrt(friction / 2) * 0.5 / viscosity


def _sheets(parts: Parts) -> str:
    return (
        f"at {counted(parts.sheets.count, 'place')} of {parts.pieces:,} that lines through the "
        f"cell centres meet, it is thinner than one cell and between the centres, "
        f"{_first(parts.sheets)}"
    )


def _first(place: Place) -> str:
    at = ", ".join(f"{axis}={n:.4g}" for axis, n in zip("xyz", place.first, strict=False))
    return f"the first at {at}"


def _by(sides: Sequence[float]) -> str:
    return " x ".join(f"{n:.4g}" for n in sides)

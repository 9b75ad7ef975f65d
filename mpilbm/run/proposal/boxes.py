"""The box of a proposed flow in cells, and the shape of the body or passage in it."""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from mpilbm.run.preflight.inspection import TURBULENT
from mpilbm.run.proposal.flow import FLAT, Flow

UPSTREAM, DOWNSTREAM = 1.0, 2.5  # of the margin around a body
CLOSED = 1  # cells of solid between a passage and the box; an open end lies so far outside
AXIS, EXPONENT = 1.224, 0.143  # of a power law in a pipe: speed on the axis over the mean
PARABOLA = 2.0  # the same of laminar flow in a pipe

PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"))

Point = tuple[float, float, float]


@dataclass(frozen=True)
class Box:
    """A box in cells.

    fastest  the largest given speed over the speed of the flow
    passage  cells through which the fluid travels
    sponge   thickness of the sponge in front of the outlet
    shape    table of the body; None if the faces of the box are the walls
    """

    size: tuple[int, int, int]
    fastest: float
    passage: float
    sponge: float
    shape: dict[str, Any] | None


def metres(cells: float, cell: float) -> str:
    """A length of a number of cells, as a quantity."""
    return quantity(cells * cell, "m")


def quantity(value: float, unit: str) -> str:
    """A number of metres or seconds with the prefix that suits it."""
    size = abs(value) or 1.0
    scale, prefix = next((each for each in PREFIXES if size >= each[0]), PREFIXES[-1])
    return f"{value / scale:.9g} {prefix}{unit}"


def box_of(flow: Flow, cell: float) -> Box:
    """The box of a flow in cells of this side in m."""
    if flow.kind == "external":
        return _past_body(flow, cell)
    return _duct(flow, cell) if flow.shape == FLAT else _passage(flow, cell)


def _past_body(flow: Flow, cell: float) -> Box:
    """The body in a box of the given blockage.

    The cross-section is (b + m) (h + m) = b h / blockage for a bounding box of b x h. The margin m
    is also the distance of the body from the inlet; that from the outlet is 2.5 m.
    """
    x, y, z = (side / cell for side in flow.sides)
    m = (sqrt((y + z) ** 2 + 4 * y * z * (1 / flow.blockage - 1)) - y - z) / 2
    gap = (flow.ground or 0.0) / cell
    front = ceil(UPSTREAM * m)
    size = front + ceil(x + DOWNSTREAM * m), ceil(y + m), ceil(gap + z + m)
    at = front + x / 2, size[1] / 2, gap if flow.ground else size[2] / 2
    if flow.shape == "sphere":
        centre = (*at[:2], gap + z / 2 if flow.ground else at[2])
        shape = {"name": "sphere", "centre": _point(centre, cell), "radius": _half(flow)}
    else:
        anchor = {"anchor": "bottom"} if flow.ground else {}
        shape = _mesh(flow) | anchor | {"at": _point(at, cell)}
    return Box(size, 1.0, size[0], max(1, round(DOWNSTREAM * m / 2)), shape)


def _duct(flow: Flow, cell: float) -> Box:
    """A square duct along x, whose walls are faces of the box."""
    x, y, z = (round(side / cell) for side in flow.sides)
    return Box((x, y, z), 1.0, x, _sponge(y, x), None)


def _passage(flow: Flow, cell: float) -> Box:
    """A box whose faces cut the openings of the passage, with solid beyond its other sides."""
    size, middle = [], []
    for axis, side in zip("xyz", flow.sides, strict=True):
        low, high = (-CLOSED if axis + end in flow.faces else CLOSED for end in "-+")
        n = ceil(side / cell - 1e-6) + low + high
        size.append(n)
        middle.append(n / 2 if low == high else low + side / cell / 2)
    axes = {face[0] for face in flow.faces}
    passage = sum(n for n, axis in zip(size, "xyz", strict=True) if axis in axes)
    at = middle[0], middle[1], middle[2]
    fastest = 1.0
    if flow.shape == "pipe":
        fastest = PARABOLA if flow.reynolds < TURBULENT else AXIS
        shape = {"name": "difference", "of": [_block(flow), _bore(flow, at, cell)]}
    else:
        shape = _mesh(flow) | {"invert": True, "at": _point(at, cell)}
    end = size["xyz".index(flow.faces[1][0])]
    sponge = _sponge(round(flow.length / cell), end)
    return Box((size[0], size[1], size[2]), fastest, passage, sponge, shape)


def _sponge(bore: int, length: int) -> int:
    """The thickness of the sponge: a bore, but at most a quarter of the box along the flow."""
    return max(1, min(bore, length // 4))


def _block(flow: Flow) -> dict[str, Any]:
    """A box of solid around a pipe."""
    far = max(flow.sides) + 2 * flow.length
    lower, upper = quantity(-flow.length, "m"), quantity(far, "m")
    return {"name": "box", "lower": [lower] * 3, "upper": [upper] * 3}


def _bore(flow: Flow, at: Point, cell: float) -> dict[str, Any]:
    """The cylinder of a pipe along x."""
    place = {"axis": "x", "centre": _point(at, cell), "radius": _half(flow)}
    return {"name": "cylinder"} | place


def _mesh(flow: Flow) -> dict[str, Any]:
    """The mesh without its place."""
    return {"name": "mesh", "file": flow.shape, **flow.size}


def _point(at: Point, cell: float) -> list[str]:
    """A point as quantities."""
    return [metres(each, cell) for each in at]


def _half(flow: Flow) -> str:
    """The radius of a sphere or pipe."""
    return quantity(flow.length / 2, "m")

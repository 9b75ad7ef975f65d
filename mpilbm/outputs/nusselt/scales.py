"""The scalar, the axis, the length and the difference by which fluxes become Nusselt numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpilbm.physics.lattices import AXES
from mpilbm.physics.scalars.boundaries import ScalarBoundary

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.case.model import Scalar


class NotDefined(ValueError):
    """A scale that does not follow from the case; the text names the key."""


@dataclass(frozen=True)
class Scales:
    """Nu = flux length / (diffusivity difference), for the flux along +axis."""

    number: int
    axis: int
    length: float
    difference: float
    diffusivity: float

    @property
    def unit(self) -> float:
        """The flux whose Nusselt number is 1."""
        return self.diffusivity * self.difference / self.length


def scalar_number(case: "Case", label: str | None) -> int:
    """The number of the scalar with this label, or of the only one; NotDefined."""
    known = ", ".join(dict.fromkeys(case.labels))
    if not known:
        raise NotDefined("scalar: the case has none; add [[scalar]] or remove this output")
    if label is None and len(set(case.labels)) > 1:
        raise NotDefined(f"scalar: missing; allowed: one of {known}")
    if label is not None and label not in case.labels:
        raise NotDefined(f"scalar: found '{label}'; allowed: {known}")
    return 0 if label is None else case.labels.index(label)


def wall_values(scalar: "Scalar", axis: int) -> tuple[float, float] | None:
    """The values at the lower and the upper face of an axis; None unless both are numbers."""
    of_faces: dict[str, ScalarBoundary] = {
        face: each for each in scalar.boundaries for face in each.where
    }
    found = []
    for side in "-+":
        boundary = of_faces.get(AXES[axis] + side)
        value = getattr(boundary, "value", None) if boundary is not None else None
        if not isinstance(value, int | float):
            return None
        found.append(float(value))
    return found[0], found[1]


def supplied(scalar: "Scalar") -> frozenset[str]:
    """The faces at which a value or a flux is given; the others are adiabatic or outlets."""
    return frozenset(face for each in scalar.boundaries if each.values() for face in each.where)


def _likely_axes(case: "Case", scalar: "Scalar") -> list[str]:
    """The axes along which there may be a flux: those with the most faces of `supplied`."""
    names, faces = AXES[: case.dimensions], supplied(scalar)
    count = [len({f"{axis}-", f"{axis}+"} & faces) for axis in names]
    closed = [not periodic for periodic in case.domain.periodic]
    best = max(zip(count, closed, strict=True))
    return [axis for axis, *each in zip(names, count, closed, strict=True) if tuple(each) == best]


def scales(
    case: "Case",
    label: str | None,
    axis: str | None,
    length: float | None,
    difference: float | None,
) -> Scales:
    """The scales of an output with these keys; NotDefined if they do not follow from the case."""
    number = scalar_number(case, label)
    scalar, D = case.scalars[number], case.dimensions
    between = {a: values for a in range(D) if (values := wall_values(scalar, a)) is not None}
    if axis is not None and axis not in AXES[:D]:
        raise NotDefined(f"axis: found '{axis}' in {D}D; allowed: {', '.join(AXES[:D])}")
    if axis is None and len(between) != 1:
        found = "no axis has" if not between else "several axes have"
        likely = " or ".join(f'"{each}"' for each in _likely_axes(case, scalar))
        raise NotDefined(
            f"axis: missing, and {found} two faces with a constant `value` of {scalar.label}; "
            f"allowed: {', '.join(AXES[:D])}; add axis = {likely}, the direction of the flux"
        )
    a = next(iter(between)) if axis is None else AXES.index(axis)
    if difference is None:
        if a not in between:
            raise NotDefined(
                f"difference: missing, and the faces {AXES[a]}- and {AXES[a]}+ have no constant "
                f"`value` of {scalar.label}; give the difference of {scalar.label}"
            )
        difference = between[a][0] - between[a][1]
    if difference == 0:
        raise NotDefined("difference: is 0, so that a Nusselt number is not defined; give another")
    size = float(case.domain.size[a])
    return Scales(number, a, size if length is None else length, difference, scalar.diffusivity)

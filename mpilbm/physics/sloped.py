"""Fields whose gradients are summed over the box: order parameters of couplings, and scalars.

Each cell stores them after its velocity, so that kernels find those of its neighbours.

    interfaces   sum |grad phi|, from which `interface_length` computes a length
    scalars      max |phi - middle|, which is compared with bounds (solver/scalar_bounds.py), and
                 sum phi, phi^2 and |grad phi|^2, from which `combined` computes

        mean = <phi>, variance = <phi^2> - <phi>^2, dissipation = D <|grad phi|^2>

with means <> over the fluid cells.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mpilbm.physics import interface_length
from mpilbm.physics.interface_length import is_maximum

CELLS = "scalar_cells"
SUM, SQUARE, GRADIENT, FARTHEST = (
    f"scalar_{part}_" for part in ("sum", "square", "gradient", "farthest")
)
MEANS = ("mean_", "variance_", "dissipation_")

__all__ = ["CELLS", "Sloped", "columns", "combined", "is_maximum", "of_interfaces", "of_scalar"]


@dataclass(frozen=True)
class Sloped:
    """One such field.

    gradient  name of the column with the sum of |grad phi|^power, times `factor`
    values    names of the columns of the field itself: none, or those of two or three values
    largest   whether these are the maxima of phi and 1/phi; else they are the sums of phi and phi^2
              and the maximum of |phi - middle|
    middle    name of the kernel argument with this middle; empty: there is none
    """

    gradient: str
    power: int
    factor: float
    values: tuple[str, ...]
    largest: bool
    middle: str = ""

    @property
    def maxima(self) -> tuple[bool, ...]:
        """Which of the columns `values` are maxima."""
        return tuple(self.largest or name.startswith(FARTHEST) for name in self.values)


def of_interfaces(jumps: tuple[float | None, ...]) -> tuple[Sloped, ...]:
    """The order parameters of a coupling, see Coupling.jumps."""
    return tuple(
        Sloped(
            gradient=f"{interface_length.GRADIENT}{k}",
            power=1,
            factor=1 / (jump or 1.0),
            values=() if jump else (f"{interface_length.HIGH}{k}",
                                    f"{interface_length.INVERSE_LOW}{k}"),
            largest=True,
        )
        for k, jump in enumerate(jumps)
    )  # fmt: skip


def of_scalar(label: str, diffusivity: float) -> Sloped:
    """A scalar phi: its sums, the farthest value from the middle, and |grad phi|^2."""
    values = (SUM + label, SQUARE + label, FARTHEST + label)
    return Sloped(f"{GRADIENT}{label}", 2, diffusivity, values, False, middle_name(label))


def middle_name(label: str) -> str:
    """The argument of kernels with the value from which the distance of a scalar is computed."""
    return f"middle_of_{label}"


def columns(names: Iterable[str]) -> list[str]:
    """The names of the values that `combined` returns for totals with these names."""
    names = list(names)
    labels = [name.removeprefix(SUM) for name in names if name.startswith(SUM)]
    found = interface_length.columns([name for name in names if not name.startswith("scalar_")])
    return found + [part + label for label in labels for part in MEANS]


def combined(totals: dict[str, float]) -> dict[str, float]:
    """Replace the sums of these fields in the totals of a box by lengths and means."""
    own = {name: total for name, total in totals.items() if not name.startswith("scalar_")}
    found = interface_length.with_length(own)
    cells = max(totals.get(CELLS, 0.0), 1.0)
    for name in totals:
        if name.startswith(SUM):
            label = name.removeprefix(SUM)
            mean, square = (totals[part + label] / cells for part in (SUM, SQUARE))
            values = mean, max(square - mean**2, 0.0), totals[GRADIENT + label] / cells
            found |= {part + label: v for part, v in zip(MEANS, values, strict=True)}
    return found

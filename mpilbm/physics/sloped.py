"""Fields whose gradients are summed over the box: order parameters of couplings, and scalars.

Each cell stores them after its velocity, so that kernels find those of its neighbours.

    interfaces   sum |grad phi|, from which the length of the interfaces follows (in 3D their area)

        length = sum_k int |grad phi_k| dV / (high_k - low_k)

    scalars      max |phi - middle|, which is compared with bounds (solver/scalar_bounds.py), and
                 sum phi, phi^2 and |grad phi|^2, from which follow, with means <> over fluid cells,

        mean = <phi>, variance = <phi^2> - <phi>^2, dissipation = D <|grad phi|^2>

high_k and low_k are the values of phi_k on the two sides of an interface. All level sets of phi_k
have equal weights, so the result for a smooth interface is the mean length of its level sets. With
more than one order parameter, each interface appears in two of them, so the sum is halved.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LENGTH = "interface_length"
EDGE, HIGH, INVERSE_LOW = (f"interface_{part}_" for part in ("gradient", "high", "inverse_low"))
LEAST = 0.05  # smallest jump of an interface, relative to the largest value; below it is sound
CELLS = "scalar_cells"
SUM, SQUARE, GRADIENT, FARTHEST = (
    f"scalar_{part}_" for part in ("sum", "square", "gradient", "farthest")
)
MEANS = ("mean_", "variance_", "dissipation_")


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
    found = []
    for k, jump in enumerate(jumps):
        values = () if jump else (f"{HIGH}{k}", f"{INVERSE_LOW}{k}")
        found.append(Sloped(f"{EDGE}{k}", 1, 1 / (jump or 1.0), values, largest=True))
    return tuple(found)


def of_scalar(label: str, diffusivity: float) -> Sloped:
    """A scalar phi: its sums, the farthest value from the middle, and |grad phi|^2."""
    values = (SUM + label, SQUARE + label, FARTHEST + label)
    return Sloped(f"{GRADIENT}{label}", 2, diffusivity, values, False, middle_name(label))


def middle_name(label: str) -> str:
    """The argument of kernels with the value from which the distance of a scalar is computed."""
    return f"middle_of_{label}"


def is_maximum(name: str) -> bool:
    """Whether the column `name` holds a maximum; all other columns hold sums."""
    return name.startswith((HIGH, INVERSE_LOW)) or name == "max_speed"


def columns(names: Iterable[str]) -> list[str]:
    """The names of the values that `combined` returns for totals with these names."""
    names = list(names)
    found = [name for name in names if not name.startswith(("scalar_", "interface_"))]
    found += [LENGTH] * any(name.startswith("interface_") for name in names)
    labels = [name.removeprefix(SUM) for name in names if name.startswith(SUM)]
    return found + [part + label for label in labels for part in MEANS]


def combined(totals: Mapping[str, float]) -> dict[str, float]:
    """Replace the sums of these fields in the totals of a box by lengths and means."""
    found = {k: v for k, v in totals.items() if not k.startswith(("scalar_", "interface_"))}
    edges = [name.removeprefix(EDGE) for name in totals if name.startswith(EDGE)]
    if edges:
        length = sum(_over_jump(totals, k) for k in edges)
        found[LENGTH] = length / (2 if len(edges) > 1 else 1)
    cells = max(totals.get(CELLS, 0.0), 1.0)
    for name in totals:
        if name.startswith(SUM):
            label = name.removeprefix(SUM)
            mean, square = (totals[part + label] / cells for part in (SUM, SQUARE))
            values = mean, max(square - mean**2, 0.0), totals[GRADIENT + label] / cells
            found |= {part + label: v for part, v in zip(MEANS, values, strict=True)}
    return found


def _over_jump(totals: Mapping[str, float], k: str) -> float:
    """The integral of |grad phi_k| divided by the jump of phi_k; 0 if there is no interface."""
    gradient = totals[f"{EDGE}{k}"]
    if f"{HIGH}{k}" not in totals:
        return gradient
    high, inverse = totals[f"{HIGH}{k}"], totals[f"{INVERSE_LOW}{k}"]
    jump = high - (1 / inverse if inverse else 0.0)
    return gradient / jump if jump > LEAST * high else 0.0

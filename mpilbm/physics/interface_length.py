"""Length of the interfaces in a box (their area in 3D), from sums over its cells."""

from collections.abc import Collection, Mapping, Sequence

NAME = "interface_length"
GRADIENT, HIGH, INVERSE_LOW = (f"interface_{part}_" for part in ("gradient", "high", "inverse_low"))
LEAST = 0.05  # smallest jump of an interface, relative to the largest value; below it is sound


def gradients(jumps: Sequence[float | None]) -> tuple[str, ...]:
    """Names of the sums of |grad phi|, one for each order parameter phi."""
    return tuple(f"{GRADIENT}{k}" for k in range(len(jumps)))


def ends(jumps: Sequence[float | None]) -> tuple[str, ...]:
    """Names of the maxima of phi and of 1/phi, for each phi whose jump is unknown (None)."""
    unknown = (k for k, jump in enumerate(jumps) if jump is None)
    return tuple(f"{part}{k}" for k in unknown for part in (HIGH, INVERSE_LOW))


def is_maximum(name: str) -> bool:
    """Whether the column `name` holds a maximum; all other columns hold sums."""
    return name.startswith((HIGH, INVERSE_LOW)) or name == "max_speed"


def columns(names: Collection[str]) -> list[str]:
    """The names of the values that `with_length` returns for totals with these names."""
    own = [name for name in names if not name.startswith("interface_")]
    return own + [NAME] * (len(own) < len(names))


def with_length(totals: dict[str, float]) -> dict[str, float]:
    """Replace the sums over |grad phi| in the totals of a box by the interface length.

        length = sum_k int |grad phi_k| dV / (high_k - low_k)

    high_k and low_k are the values of phi_k on the two sides of an interface. All level sets of
    phi_k have equal weights, so the result for a smooth interface is the mean length of its level
    sets. With more than one order parameter, each interface appears in two of them, so the sum is
    halved.
    """
    found = {name: totals[name] for name in totals if not name.startswith("interface_")}
    fields = [name.removeprefix(GRADIENT) for name in totals if name.startswith(GRADIENT)]
    if fields:
        length = sum(_over_jump(totals, k) for k in fields)
        found[NAME] = length / (2 if len(fields) > 1 else 1)
    return found


def _over_jump(totals: Mapping[str, float], k: str) -> float:
    """The integral of |grad phi_k| divided by the jump of phi_k; 0 if there is no interface."""
    gradient = totals[f"{GRADIENT}{k}"]
    if f"{HIGH}{k}" not in totals:
        return gradient
    high, inverse = totals[f"{HIGH}{k}"], totals[f"{INVERSE_LOW}{k}"]
    jump = high - (1 / inverse if inverse else 0.0)
    return gradient / jump if jump > LEAST * high else 0.0

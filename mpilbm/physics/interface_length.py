"""Length of the interfaces in a box (their area in 3D), from sums over its cells."""

NAME = "interface_length"
GRADIENT, HIGH, INVERSE_LOW = (f"interface_{part}_" for part in ("gradient", "high", "inverse_low"))
LEAST = 0.05  # smallest jump, relative to the largest value; smaller ones are sound, not interfaces


def gradients(jumps) -> tuple[str, ...]:
    """Names of the sums of |grad phi|, one for each order parameter phi."""
    return tuple(f"{GRADIENT}{k}" for k in range(len(jumps)))


def ends(jumps) -> tuple[str, ...]:
    """Names of the maxima of phi and of 1/phi, for each phi whose jump is unknown (None)."""
    unknown = (k for k, jump in enumerate(jumps) if jump is None)
    return tuple(f"{part}{k}" for k in unknown for part in (HIGH, INVERSE_LOW))


def is_maximum(name: str) -> bool:
    """Whether a column is a maximum; the others are sums."""
    return name.startswith((HIGH, INVERSE_LOW)) or name == "max_speed"


def columns(names) -> list[str]:
    """The names of the values that `with_length` returns."""
    own = [name for name in names if not name.startswith("interface_")]
    return own + [NAME] * (len(own) < len(names))


def with_length(totals: dict[str, float]) -> dict[str, float]:
    """Totals of a box, with the interface length in place of the sums that it is computed from.

        length = sum_k int |grad phi_k| dV / (high_k - low_k)

    All level sets of phi have equal weights, so a smooth interface has the mean of their lengths.
    With more than one order parameter each interface separates two of them and counts half in each.
    """
    found = {name: totals[name] for name in totals if not name.startswith("interface_")}
    fields = [name.removeprefix(GRADIENT) for name in totals if name.startswith(GRADIENT)]
    if fields:
        length = sum(_over_jump(totals, k) for k in fields)
        found[NAME] = length / (2 if len(fields) > 1 else 1)
    return found


def _over_jump(totals, k: str) -> float:
    gradient = totals[f"{GRADIENT}{k}"]
    if f"{HIGH}{k}" not in totals:
        return gradient
    high, inverse = totals[f"{HIGH}{k}"], totals[f"{INVERSE_LOW}{k}"]
    jump = high - (1 / inverse if inverse else 0.0)
    return gradient / jump if jump > LEAST * high else 0.0

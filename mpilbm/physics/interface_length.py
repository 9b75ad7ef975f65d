"""How long the interfaces in a box are, from sums over its cells."""

NAME = "interface_length"
GRADIENT, HIGH, INVERSE_LOW = (f"interface_{part}_" for part in ("gradient", "high", "inverse_low"))
LEAST = 0.05  # of the larger value: fields that differ by less have no interface, but sound


def gradients(jumps) -> tuple[str, ...]:
    """Names of the sums of |grad phi| of each field phi that tells phases apart."""
    return tuple(f"{GRADIENT}{k}" for k in range(len(jumps)))


def ends(jumps) -> tuple[str, ...]:
    """Names of the largest phi and the largest 1/phi of those whose jump (None) is not known."""
    unknown = (k for k, jump in enumerate(jumps) if jump is None)
    return tuple(f"{part}{k}" for k in unknown for part in (HIGH, INVERSE_LOW))


def is_maximum(name: str) -> bool:
    """Whether a column is a maximum and no sum."""
    return name.startswith((HIGH, INVERSE_LOW)) or name == "max_speed"


def columns(names) -> list[str]:
    """The names of `with_length`, without any values."""
    own = [name for name in names if not name.startswith("interface_")]
    return own + [NAME] * (len(own) < len(names))


def with_length(totals: dict[str, float]) -> dict[str, float]:
    """Totals of a box with the length of interfaces (their area in 3D) in place of what makes it.

        sum_k int |grad phi_k| dV / (high_k - low_k)

    All level sets of phi count alike, so that a smooth interface is as long as the mean of them.
    Of more than one field each interface is one of two, and counts half in each.
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

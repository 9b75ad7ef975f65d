"""The colour map of a field: diverging around 0 for signed quantities, else sequential."""

from typing import NamedTuple

SIGNED = ("phi", "q_criterion", "vorticity")  # fields whose value 0 has a meaning
LEAST = 0.01  # of the values of one sign, relative to those of the other; less may be round-off


class Colours(NamedTuple):
    """The name of a colour map, and the values at its ends; the keywords of `imshow`."""

    cmap: str
    vmin: float
    vmax: float


def colours_of(low: float, high: float, signed: bool, fixed: bool = False) -> Colours:
    """The colours of values from `low` to `high`.

    A signed quantity with values of both signs has a diverging map, which is white at 0 and
    symmetric. `fixed`: the ends are kept, so that only symmetric ones have a diverging map.
    """
    top = max(-low, high)
    if signed and min(-low, high) > LEAST * top and (not fixed or -low == high):
        return Colours("RdBu_r", -top, top)
    return Colours("viridis", low, high)

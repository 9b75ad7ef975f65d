"""The factor by which a velocity or a force rises smoothly from 0 to its full value at a start.

    s(t) = (1 - cos(pi min(t / steps, 1))) / 2

Half a wave of a cosine: s and ds/dt are continuous, s(0) = 0, and s = 1 exactly from t = steps on.
"""

from typing import Any

import numpy as np


def rise(t: Any, steps: int) -> Any:
    """s(t), float64, in the shape of t; 1 if steps is 0."""
    if not steps:
        return 1.0
    return (1 - np.cos(np.pi * np.minimum(np.asarray(t, np.float64) / steps, 1))) / 2


def risen(value: float | str, steps: int) -> float | str:
    """The formula of s(t) times a number or a formula; the value itself without a ramp or if 0."""
    if not steps or value == 0:
        return value
    return f"({value if isinstance(value, str) else repr(value)})*(1 - cos(pi*min(t/{steps}, 1)))/2"

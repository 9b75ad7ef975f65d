"""The factor by which a velocity or a force rises smoothly from 0 to its full value at a start.

    s(t) = (1 - cos(pi min(t / steps, 1))) / 2

Half a wave of a cosine: s and ds/dt are continuous, s(0) = 0, and s = 1 exactly from t = steps on.
"""

from typing import Any

import numpy as np

from mpilbm.core.formulas.parser import Formula
from mpilbm.core.formulas.trees import Tree


def rise(t: Any, steps: int) -> Any:
    """s(t), float64, in the shape of t; 1 if steps is 0."""
    if not steps:
        return 1.0
    return (1 - np.cos(np.pi * np.minimum(np.asarray(t, np.float64) / steps, 1))) / 2


def risen(tree: Tree, steps: int) -> Tree:
    """The tree of a number or formula times s(t); the tree itself if steps is 0."""
    if not steps:
        return tree
    return "*", tree, Formula(f"(1 - cos(pi*min(t/{steps}, 1)))/2").tree

"""Choose combinations of options such that each pair of values occurs at least once."""

import os
from itertools import combinations, product
from types import SimpleNamespace

from mpilbm.registry import make

ALL_COMBINATIONS = bool(os.environ.get("MPILBM_TEST_ALL"))


def all_pairs(options: dict[str, list], allowed=lambda choice: True) -> list[dict]:
    """Combinations with each allowed pair of values at least once; all with MPILBM_TEST_ALL."""
    names = list(options)
    choices = [dict(zip(names, values, strict=True)) for values in product(*options.values())]
    choices = [choice for choice in choices if allowed(choice)]
    if ALL_COMBINATIONS:
        return choices
    pairs_of = {id(c): {frozenset(p) for p in combinations(c.items(), 2)} for c in choices}
    missing, chosen = set().union(*pairs_of.values()), []
    while missing:
        best = max(choices, key=lambda c: len(pairs_of[id(c)] & missing))
        chosen.append(best)
        missing -= pairs_of[id(best)]
    return chosen


def every_value(options: dict[str, list], allowed, pairs: tuple[str, ...]) -> list[dict]:
    """A subset of `all_pairs` with each value, and each pair of values of the options in `pairs`.

    All combinations with MPILBM_TEST_ALL.
    """

    def has(choice):
        own = {k: v for k, v in choice.items() if k in pairs}
        return {frozenset([item]) for item in choice.items()} | {
            frozenset(pair) for pair in combinations(own.items(), 2)
        }

    choices = all_pairs(options, allowed)
    if ALL_COMBINATIONS:
        return choices
    missing, chosen = set().union(*map(has, choices)), []
    while missing:
        best = max(choices, key=lambda choice: len(has(choice) & missing))
        chosen.append(best)
        missing -= has(best)
    return chosen


def label(choice: dict) -> str:
    """The test id of a combination."""
    return "-".join(str(value) for value in choice.values())


def defined(lattice: str, collision) -> bool:
    """Whether a collision (a name or a table) and its equilibrium are defined on a lattice."""
    collision = make("collisions", collision)
    case = SimpleNamespace(lattice=make("lattices", lattice), fluids=())
    return not (collision.problems(case) or collision.equilibrium.problems(case))

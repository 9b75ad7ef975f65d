"""Choose combinations of options such that every pair of values occurs in one of them."""

import os
from itertools import combinations, product
from types import SimpleNamespace

from mpilbm.registry import make

EVERYTHING = bool(os.environ.get("MPILBM_TEST_ALL"))


def all_pairs(options: dict[str, list], allowed=lambda choice: True) -> list[dict]:
    """Combinations that hold each allowed pair at least once; all of them with MPILBM_TEST_ALL."""
    names = list(options)
    choices = [dict(zip(names, values, strict=True)) for values in product(*options.values())]
    choices = [choice for choice in choices if allowed(choice)]
    if EVERYTHING:
        return choices
    pairs_of = {id(c): {frozenset(p) for p in combinations(c.items(), 2)} for c in choices}
    missing, chosen = set().union(*pairs_of.values()), []
    while missing:
        best = max(choices, key=lambda c: len(pairs_of[id(c)] & missing))
        chosen.append(best)
        missing -= pairs_of[id(best)]
    return chosen


def every_value(options: dict[str, list], allowed, pairs: tuple[str, ...]) -> list[dict]:
    """Of `all_pairs` those with each pair of values of the options in `pairs`, and each value once.

    All combinations with MPILBM_TEST_ALL.
    """

    def has(choice):
        own = {k: v for k, v in choice.items() if k in pairs}
        return {frozenset([item]) for item in choice.items()} | {
            frozenset(pair) for pair in combinations(own.items(), 2)
        }

    choices = all_pairs(options, allowed)
    if EVERYTHING:
        return choices
    missing, chosen = set().union(*map(has, choices)), []
    while missing:
        best = max(choices, key=lambda choice: len(has(choice) & missing))
        chosen.append(best)
        missing -= has(best)
    return chosen


def label(choice: dict) -> str:
    """A test id."""
    return "-".join(str(value) for value in choice.values())


def defined(lattice: str, collision) -> bool:
    """Whether a lattice has a collision (a name or a table) and its equilibrium."""
    collision = make("collisions", collision)
    case = SimpleNamespace(lattice=make("lattices", lattice), fluids=())
    return not (collision.problems(case) or collision.equilibrium.problems(case))

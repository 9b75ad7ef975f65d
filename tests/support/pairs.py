"""Choose combinations of options such that each pair of values occurs at least once."""

import os
from itertools import combinations, product
from types import SimpleNamespace

from mpilbm.core.registry import make

ALL_COMBINATIONS = bool(os.environ.get("MPILBM_TEST_ALL"))
SHARES = {"each": slice(None), "half": slice(1, None, 2)}
NAMES_ONLY = os.environ.get("MPILBM_TEST_NAMES")


def all_pairs(options: dict[str, list], allowed=lambda choice: True) -> list[dict]:
    """Combinations with each allowed pair of values at least once.

    All combinations with MPILBM_TEST_ALL; with MPILBM_TEST_NAMES those with which each value occurs
    at least once ("each"), or one half of them ("half")."""
    names = list(options)
    choices = [dict(zip(names, values, strict=True)) for values in product(*options.values())]
    choices = [choice for choice in choices if allowed(choice)]
    return share(cover(choices, ())) if NAMES_ONLY else cover(choices, names)


def share(choices: list[dict]) -> list[dict]:
    """All of them; with MPILBM_TEST_NAMES = "half" every other one."""
    return choices[SHARES[NAMES_ONLY]] if NAMES_ONLY else choices


def every_value(options: dict[str, list], allowed, pairs: tuple[str, ...]) -> list[dict]:
    """A subset of `all_pairs` with each value, and each pair of values of the options in `pairs`.

    All combinations with MPILBM_TEST_ALL.
    """
    return cover(all_pairs(options, allowed), pairs)


def cover(choices: list[dict], pairs) -> list[dict]:
    """A subset of combinations with each value, and each pair of values of the options in `pairs`.

    All of them with MPILBM_TEST_ALL.
    """
    if ALL_COMBINATIONS:
        return choices

    def parts(choice):
        own = [item for item in choice.items() if item[0] in pairs]
        return {frozenset([item]) for item in choice.items()} | {
            frozenset(pair) for pair in combinations(own, 2)
        }

    parts_of = {id(choice): parts(choice) for choice in choices}
    missing, chosen = set().union(*parts_of.values()), []
    while missing:
        best = max(choices, key=lambda choice: len(parts_of[id(choice)] & missing))
        chosen.append(best)
        missing -= parts_of[id(best)]
    return chosen


def label(choice: dict) -> str:
    """The test id of a combination."""
    return "-".join(str(value) for value in choice.values())


def defined(lattice: str, collision) -> bool:
    """Whether a collision (a name or a table) and its equilibrium are defined on a lattice."""
    collision = make("collisions", collision)
    case = SimpleNamespace(lattice=make("lattices", lattice), fluids=())
    return not (collision.problems(case) or collision.equilibrium.problems(case))

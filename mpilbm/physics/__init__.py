"""The physics, one file per model: lattices, equilibria, collisions, …, couplings.

Each file contains the formulas of one model as in its paper, with symbols and exact fractions. It
contains no memory layout and no device code. To add a model, write one file in the folder of its
kind: a class derived from the base class in the folder's `__init__.py`, with `@register(kind,
name)`. The case file selects it by its name; code generation and checks need no change.
"""

"""The physics, a file per model: lattices, equilibria, collisions, forcing, boundaries, couplings.

Each file contains the formulas of one model as in its paper, as symbols and exact numbers. It knows
neither memory layouts nor devices. Imports only formulas, verdicts and lower layers. Newcomers add
their model here: one file in the folder of its kind with `@register(kind, name)`.
"""

"""Diagnostics of a slab, which do not change its state: fields, sums, statistics.

Imports the modules of the solver below `solver.solver`. Add a field or a sum over the cells to
`diagnostics`.
"""

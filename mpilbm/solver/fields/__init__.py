"""Diagnostics of a slab, which do not change its state: fields, sums, statistics.

Imports the other modules of the solver; of these `solver.solver` alone imports this folder. Add
a field or a sum over the cells to `diagnostics`.
"""

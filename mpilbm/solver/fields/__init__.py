"""What is computed from the state of a slab without changing it: fields, sums, statistics.

Imports the other modules of the solver; of these `solver.solver` alone imports this folder. Add
a field or a sum over the cells to `diagnostics`.
"""

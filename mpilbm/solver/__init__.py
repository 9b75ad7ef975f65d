"""The solver of one slab: its state and the passes of a time step.

Start reading at `solver.Solver.step`. What the parts of a solver share is a `context.SlabContext`.
Add a field or a sum over the cells in `fields`.
"""

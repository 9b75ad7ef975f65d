"""The solver of one slab: its state and the passes of a time step.

Start reading at `solver.Solver.step`. Imports codegen, backends, halo, geometry and lower layers.
"""

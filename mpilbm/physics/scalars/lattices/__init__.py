"""Velocity sets of scalars: those with axes only, and lattices of fluids.

A scalar needs isotropy of second order only. To add a lattice, write one file with a class derived
from `Lattice` and `@register("scalar_lattices", name)`.
"""

"""Lattices of fluids that a scalar may use, too: isotropic to order 4."""

from mpilbm.core.registry import register
from mpilbm.physics.lattices.d2q9 import D2Q9
from mpilbm.physics.lattices.d3q15 import D3Q15
from mpilbm.physics.lattices.d3q19 import D3Q19

for lattice in (D2Q9, D3Q15, D3Q19):
    register("scalar_lattices", lattice.__name__)(lattice)

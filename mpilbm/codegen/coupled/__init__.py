"""Kernels of coupled fluids: the potentials of a cell and the collisions that use them."""

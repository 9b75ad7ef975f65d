"""Kernels of coupled fluids: the fields of a cell and the collisions that use them."""

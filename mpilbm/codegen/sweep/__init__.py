"""The moment sweep: a CUDA kernel that updates the moments of all cells of some planes."""

"""The kernels of the forces on bodies."""

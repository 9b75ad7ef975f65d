"""The kernels of a fluid that carries scalars."""

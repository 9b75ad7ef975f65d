"""What the backend `cuda` does differently on AMD GPUs, where CuPy calls HIP."""

"""The kernels that compute fields at listed cells."""

"""The parts of a kernel's text: values and statements, and kernels that compute sums."""

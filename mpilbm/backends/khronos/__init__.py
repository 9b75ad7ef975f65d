"""What the backend `opencl` consists of: choice of a device, arrays, launches."""

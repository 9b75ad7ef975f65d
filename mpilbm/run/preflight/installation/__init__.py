"""`mpilbm info`: versions, MPI, HDF5, devices, compilers and caches, with fixes."""

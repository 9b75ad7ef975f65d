"""Lattice Boltzmann flow solver for GPUs and CPUs: `mpirun -n N mpilbm run case.toml`."""

__version__ = "0.1.0"

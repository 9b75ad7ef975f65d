"""The package mpilbm.solver."""

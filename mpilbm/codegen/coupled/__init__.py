"""The package mpilbm.solver.coupled_fields."""

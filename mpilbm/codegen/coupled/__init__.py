"""The package mpilbm.coupled."""

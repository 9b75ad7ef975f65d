"""The package mpilbm.parallel."""

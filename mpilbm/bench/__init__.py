"""The package mpilbm.bench."""

"""The package mpilbm.geometry."""

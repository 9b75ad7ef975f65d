"""The package mpilbm.system."""

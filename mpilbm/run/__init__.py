"""The package mpilbm.run."""

"""The package mpilbm.plot."""

"""The package mpilbm.case."""

"""The package mpilbm.sweep."""

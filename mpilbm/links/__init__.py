"""The package mpilbm.links."""

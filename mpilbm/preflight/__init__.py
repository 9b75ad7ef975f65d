"""The package mpilbm.preflight."""

"""The package mpilbm.physics."""

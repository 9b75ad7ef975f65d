"""The package mpilbm.storage."""

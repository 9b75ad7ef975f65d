"""The package mpilbm.verdicts."""

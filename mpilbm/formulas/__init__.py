"""The package mpilbm.formulas."""

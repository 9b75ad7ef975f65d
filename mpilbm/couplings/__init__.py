"""Couplings between fluids."""

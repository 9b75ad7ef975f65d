"""Scalars of a checked case."""

"""Diagnostics of a slab, which do not change its state: fields, sums, statistics."""

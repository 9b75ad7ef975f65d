"""The transport of scalars on a slab."""

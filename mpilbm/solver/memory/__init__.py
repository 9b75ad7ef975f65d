"""The memory that a slab needs, computed before anything is allocated."""

"""The surfaces of bodies, and the values on them, for the output `surface`."""

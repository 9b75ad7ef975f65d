"""Fields of the box, or of a part of it, as VTKHDF ImageData."""

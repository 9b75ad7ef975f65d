"""Bodies and masks to solid cells and boundary entries; shapes; diagnosis of the geometry.

Imports case, links, physics and lower layers. Add a shape here: one file in `shapes/`.
"""

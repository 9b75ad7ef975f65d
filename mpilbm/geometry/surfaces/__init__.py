"""Triangulated surfaces: reading them, solid cells and distances of links, reports about them.

`read` loads and closes a surface, `lines` intersects lines with triangles, `surface` answers which
points are inside and where links meet the surface, `examine` finds thin and overlapping parts.
"""

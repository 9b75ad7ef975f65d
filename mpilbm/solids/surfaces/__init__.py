"""Triangulated surfaces: reading them, solid cells and distances of links, reports about them.

`read` loads a surface with `stl`, `obj` or `ply`, and `repair` closes it. `place` moves it into the
box, `fit` compares it with the box. `lines` intersects lines with triangles, `surface` answers
which points are inside and where links meet the surface, `examine` finds thin and overlapping
parts.
"""

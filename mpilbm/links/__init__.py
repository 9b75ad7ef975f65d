"""Boundary links: which populations must be supplied next to walls, and by which boundary.

A link is missing if it does not start in a fluid cell; exactly one boundary owns it (owners.py).
boundary_links.py sorts the entries, pairs of a cell and an owner, by kernel. Only link_set.py
handles link bits. Imports parallel, layouts, physics and lower layers. Add a value that a boundary
reads of each link to wall_distance.py.
"""

"""Boundary links: which populations must be supplied next to walls, and by which boundary.

The link of a cell x along c_i comes from x - c_i. It is missing if that is not a fluid cell; then
exactly one boundary owns it (owners.py). An entry is a pair of a cell and an owner;
boundary_links.py finds the entries of a slab and sorts them by kernel (entry_list.py). Only
link_set.py handles link bits. Imports parallel, layouts, physics and lower layers. To add a value
per link that boundaries read, extend wall_distance.py.
"""

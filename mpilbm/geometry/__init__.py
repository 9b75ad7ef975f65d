"""Geometry: bodies and masks to solid cells and boundary links, shapes, and their diagnosis.

Imports links, physics and lower layers. Newcomers add a shape: one file in `shapes/`.
"""

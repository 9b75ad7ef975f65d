"""Computes solid cells and boundary entries from bodies and masks; shapes; geometry findings.

Imports case, links, physics and lower layers. To add a shape, write one file in `shapes/`.
"""

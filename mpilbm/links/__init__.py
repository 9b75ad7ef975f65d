"""Boundary links: which populations must be supplied next to walls, and by which boundary.

A link is missing if no fluid cell lies at its other end. Each missing link belongs to exactly one
boundary. Imports only physics, layouts and parallel.
"""

"""Packings: many spheres of one body, read from a file and found through a grid of bins."""

"""Runs a case with other precisions, layouts and collisions, and compares the results."""

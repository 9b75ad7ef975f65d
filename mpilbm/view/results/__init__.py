"""Reads the files that a run has written, for Python programs, pictures and reports."""

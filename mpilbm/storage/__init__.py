"""Result files: run folder, collective HDF5, CSV, background writing, digests.

Imports no output and no solver. Outputs use it; add a file format here.
"""

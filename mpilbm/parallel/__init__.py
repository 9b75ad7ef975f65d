"""Ranks, slabs of the domain, launchers, GPU-aware MPI, and collective agreement among ranks.

Imports only lower layers. Add a launcher or another way of dividing the domain here.
"""

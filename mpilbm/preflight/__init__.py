"""`check`, `info` and `list`: what a case needs, and what this installation offers.

Runs no time step. Add a check of a case that needs its geometry or the machine to `inspection`.
"""

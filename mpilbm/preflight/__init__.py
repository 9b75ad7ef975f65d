"""`check`, `info` and `list`: what a case will need and do, and what this machine offers.

Runs no time step. Add a check of a case that needs its geometry or the machine to `inspection`.
"""

"""`check`, `info` and `list`: the requirements of a case, and the features of an installation.

Runs no time step. Add a check of a case that needs its geometry or the machine to `inspection`.
"""

"""Pictures of snapshots and profiles, for `mpilbm plot`.

Imports matplotlib, which is optional, only when a picture is drawn.
"""

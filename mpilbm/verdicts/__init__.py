"""Findings, and the measured limits of accuracy and stability on which they are based.

Contains the stability map (`stability.json`, measured by tools/stability_map) and the limits of
Mach number and relaxation time. Imports only lower layers. Add a limit here when a measurement
shows the conditions under which a model fails.
"""

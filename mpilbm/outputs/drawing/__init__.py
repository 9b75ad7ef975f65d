"""Figures made from arrays, for pictures during a run and after it.

Imports matplotlib, which is optional, only when a figure is drawn.
"""

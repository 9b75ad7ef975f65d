"""Figures made from arrays, for pictures during a run and after it."""

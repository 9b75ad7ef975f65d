"""Checks of a run that report findings, besides those that end it (outputs/core/totals.py).

Imports the layers below the run. Add a module for a symptom of an inaccurate or unstable run.
"""

"""Ends a run early: signals, time limits, and Ctrl-C in a Python program."""

"""Formulas of the case file: parser, functions, and values in space and time.

Imports only lower layers; nothing here uses a case or a lattice. Add a function that formulas may
call to `functions`.
"""

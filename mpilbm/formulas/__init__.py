"""Formulas of the case file: `parser` -> `trees` -> `values` in space and time.

Imports only lower layers; nothing here depends on a case or a lattice. Add a function that formulas
may call to `parser.FUNCTIONS` and to the tables of `trees`.
"""

"""Formulas of the case file: `parser` (text to tree), `trees` (evaluation) and `values`.

Imports only lower layers; nothing here depends on a case or a lattice. To add a function for
formulas, add its name to `parser.FUNCTIONS` and its definition to the tables of `trees`.
"""

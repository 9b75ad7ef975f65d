"""Formulas of a case: parser, functions, values, and functions of Python traced to formulas."""

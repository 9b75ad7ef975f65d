"""Arrays, functions and files as values of a case.

`objects` finds arrays and functions in the tables of a Python program, `cell_fields` evaluates
numbers of all cells, `fluids` puts them into the forces and initial fields of a case.
"""

"""Keys and values of a case as a user gives them: earlier names, arrays, functions and files.

`objects` finds arrays and functions in the tables of a Python program, `cell_fields` evaluates
numbers of all cells, `fluids` puts them into the forces and initial fields of a case.
`earlier_names` gives keys that were renamed their present names.
"""

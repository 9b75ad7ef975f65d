"""The tables of a case file: their keys, types and limits, which pydantic checks one by one.

`case_file.CaseFile` is the whole file. The names of tables that have a checked counterpart end in
`Table` or `File`: FluidTable and Fluid, InitialTable and InitialFields, UnitsTable and Units,
CaseFile and Case.
"""

"""The case file: tables, checks, messages, units and input files. The result is a `Case`.

`case` reads a file: `overrides` -> `quantities` -> `tables` (`messages` if they are invalid) ->
`value_files` -> `checks` -> `model.Case`. Imports no solver and opens no device, so a case can be
checked on any computer. Add a key of the case file to `tables`, and its checks to `checks`.
"""

"""The case file: tables, checks, messages, units and input files; the result is a `Case`.

Imports no solver and no device, so a case is checked on any computer. Words that users read are in
`tables` and `messages`. Add a key of the case file to `tables` and its checks to `checks`.
"""

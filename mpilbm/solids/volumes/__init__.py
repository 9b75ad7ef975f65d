"""Volume files: scans of rocks, foams and tissue as arrays [z, y, x], read a few planes at a time.

`formats.py` selects the reader by the ending of a file name, `solid_planes.py` turns values into
solid cells. To add a format, write one file with a function that takes a `Source` and returns a
`Volume`, and add a row to `formats.FORMATS`.
"""

"""Evaluate the C text of addresses in Python."""

from mpilbm.layouts.grid import turns


def names_of(grid) -> dict:
    """The arguments of a grid, and the macros of prelude.h that its addresses use."""
    ends = list(turns(grid).values())

    def first(field, plane):
        return field[2] if plane < field[0] else 0

    def last(field, plane):
        return -field[2] if plane > field[1] else 0

    def either(field, plane):
        return first(field, plane) + last(field, plane)

    macros = {"TURN_FIRST": first, "TURN_LAST": last, "TURN": either}
    return {"int64": int, grid.name: ends} | macros | grid.arguments()

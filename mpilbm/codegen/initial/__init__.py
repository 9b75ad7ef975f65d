"""The kernel of the initial fields: `tables` (formulas to tables) and `kernel` (its text)."""

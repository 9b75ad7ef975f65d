"""Initial fields that are not formulas: arrays in files (`arrays`), random flows (`random`)."""

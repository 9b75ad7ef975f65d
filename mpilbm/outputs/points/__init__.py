"""What the output `probe` consists of: positions and their cells, and the table of a run."""

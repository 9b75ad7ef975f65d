"""What all tables of a run have in common: checksums of their rows, and names of earlier tables."""

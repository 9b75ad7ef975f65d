"""Samples of the flow: their sums, which checkpoints contain, and the files of their means."""

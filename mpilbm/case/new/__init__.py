"""The command `mpilbm new`: the cases that it offers, and the files that it writes."""

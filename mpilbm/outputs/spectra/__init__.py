"""Spectra of a periodic box, computed by the ranks together."""

"""Samples of rho and u that the host evaluates: higher moments, spectra of lines."""

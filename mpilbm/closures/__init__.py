"""Closures: a collision's rates from the local flow."""

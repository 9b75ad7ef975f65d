"""Passes and symbolic models -> kernel text."""
